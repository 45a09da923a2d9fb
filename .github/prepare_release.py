"""Gives a checkout the address of its repository before the package is built: links of the README and project URLs.

`python .github/prepare_release.py https://github.com/owner/name v1.2.3`, as the release workflow calls it. The package
index shows the README where relative links lead nowhere. Refuses a tag that is not the package's version.
"""

import re
import sys
import tomllib
from pathlib import Path

address, tag = sys.argv[1:]
project, readme = Path("pyproject.toml"), Path("README.md")
version = tomllib.loads(project.read_text("utf-8"))["project"]["version"]
if tag != f"v{version}":
    sys.exit(f"The tag is {tag}, but the package's is v{version}.")
text = re.sub(r"(!\[[^]]*\]\()(?!https?:)", rf"\g<1>{address}/raw/{tag}/", readme.read_text("utf-8"))
readme.write_text(re.sub(r"(\]\()(?!https?:)", rf"\g<1>{address}/blob/{tag}/", text), "utf-8")
urls = {"Source": address, "Issues": f"{address}/issues", "Changelog": f"{address}/blob/{tag}/CHANGELOG.md"}
table = "".join(f'{name} = "{url}"\n' for name, url in urls.items())
project.write_text(project.read_text("utf-8") + f"\n[project.urls]\n{table}", "utf-8")
