// Files of folders that are dropped, with their paths in them.

/** The files of entries (or files) and below; `path` of each names its folders. */
export async function filesBelow(entries) {
  const files = [];
  for (const entry of entries) {
    if (entry instanceof File) files.push(entry);
    else if (entry.isFile) {
      const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
      files.push(Object.assign(file, { path: entry.fullPath.replace(/^\//, "") }));
    } else files.push(...(await filesBelow(await listFolder(entry))));
  }
  return files;
}

/** What is in a folder, which browsers give a hundred at a time. */
async function listFolder(folder) {
  const reader = folder.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return found;
    found.push(...some);
  }
}

/** "reports/2025/q1.pdf" of a file from a folder; null for one that was chosen by itself. */
export function pathOf(file) {
  const path = file.path || file.webkitRelativePath;
  return path?.includes("/") ? path : null;
}

/** Files that the service may read: of a kind that it takes, and no litter of an operating system. */
export function readable(files, accepted) {
  const kinds = new Set(accepted.split(","));
  return files.filter((file) => {
    const isHidden = (pathOf(file) ?? file.name).split("/").some((part) => part.startsWith(".") || part === "__MACOSX");
    return !pathOf(file) || (!isHidden && kinds.has(/\.[^.]+$/.exec(file.name)?.[0].toLowerCase()));
  });
}
