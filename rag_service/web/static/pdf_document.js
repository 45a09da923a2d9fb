// Originals to be shown: PDFs by pdf.js, which is fetched with the first one, large ones part by part.

import { readOriginal } from "./api.js";

const FOLDER = new URL("./", import.meta.url).href;
const WORKER = `${FOLDER}pdf.worker.min.mjs`;
const AT_ONCE = 2 ** 18; // bytes; of a larger file, parts are fetched as its pages need them
const PART = 2 ** 17; // bytes
const MOST_PIXELS = 50e6; // of an image in the document
const MOST_BYTES = 64e6; // of a picture
const policy = globalThis.trustedTypes?.createPolicy("pdf-worker", { createScriptURL: () => WORKER });
let starting = null; // pdf.js
let opened = null; // the document that was shown last: {id, hash, task, pdf, lost}

/** {pdf, lost}: promises of the document, and of nothing: that one is rejected when it cannot be read any further. */
export async function openPdf(citation) {
  const { documentId, contentHash } = citation;
  if (opened?.id !== documentId || opened.hash !== contentHash) {
    opened?.task.destroy();
    opened = null;
    const { pdfjs, broken } = await (starting ??= start());
    const first = await readCited(citation, 0, AT_ONCE);
    let lose;
    const lost = Promise.race([broken, new Promise((_, reject) => (lose = reject))]);
    lost.catch(() => (opened = null));
    const source = first.data.length < first.size ? makeRange(pdfjs, citation, first, lose) : { data: first.data };
    const task = pdfjs.getDocument({
      ...source, wasmUrl: FOLDER, useWorkerFetch: true, isEvalSupported: false, maxImageSize: MOST_PIXELS,
    });
    task.promise.catch(lose);
    opened = { id: documentId, hash: contentHash, task, pdf: task.promise, lost };
  }
  return opened;
}

/** An image as a PDF of one page. */
export async function openImage(citation) {
  const { data, size } = await readCited(citation, 0, MOST_BYTES);
  if (data.length < size) throw new Error("too large");
  const image = await createImageBitmap(new Blob([data]));
  const page = {
    getViewport: ({ scale }) => ({ width: image.width * scale, height: image.height * scale }),
    render: ({ canvas }) => ({ promise: canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height) }),
  };
  return { numPages: 1, getPage: () => page };
}

async function start() {
  const pdfjs = await import("./pdf.min.mjs");
  const worker = new Worker(policy ? policy.createScriptURL("") : WORKER, { type: "module" });
  const broken = new Promise((_, reject) => worker.addEventListener("error", () => reject(new Error("pdf.js"))));
  broken.catch(() => (starting = null));
  pdfjs.GlobalWorkerOptions.workerPort = worker;
  return { pdfjs, broken };
}

async function readCited({ documentId, contentHash }, start, end) {
  const part = await readOriginal(documentId, start, end);
  if (contentHash && part.hash !== contentHash) throw new Error("another version");
  return part;
}

function makeRange(pdfjs, citation, { data, size }, lose) {
  const range = new pdfjs.PDFDataRangeTransport(size, data);
  range.requestDataRange = (start, end) => readCited(citation, start, end).then((part) => range.onDataRange(start, part.data), lose);
  return { range, rangeChunkSize: PART, disableAutoFetch: true, disableStream: true };
}
