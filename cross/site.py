"""Lays out the pages of the site: site.py TARGET ADDRESS. Links out of the pages lead to the repository at ADDRESS."""

import posixpath
import re
import shutil
import sys
from pathlib import Path

TARGET, ADDRESS = Path(sys.argv[1]), sys.argv[2]
ROOT = Path(__file__).parent.parent
#: Where each file of the repository lies on the site. docs/crate.md is what registries show in place of README.md.
PAGES = {str(file.relative_to(ROOT)): str(file.relative_to(ROOT / "docs")) for file in (ROOT / "docs").rglob("*") if file.is_file()}
PAGES = {"README.md": "index.md", **PAGES, "CHANGELOG.md": "CHANGELOG.md"}
del PAGES["docs/crate.md"]

broken = []
for source, page in PAGES.items():

    def link(found: re.Match) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[1]))
        if path in PAGES:
            return f"]({posixpath.relpath(PAGES[path], posixpath.dirname(page) or '.')}{found[2] or ''})"
        if not (ROOT / path).exists():
            broken.append(f"{source}: {found[1]}")
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"]({ADDRESS}/{kind}/main/{path}{found[2] or ''})"

    (TARGET / page).parent.mkdir(parents=True, exist_ok=True)
    if source.endswith(".md"):
        text = (ROOT / source).read_text()
        (TARGET / page).write_text(re.sub(r"\]\(([^):#\s]+)(#[^)\s]*)?\)", link, text))
    else:
        shutil.copyfile(ROOT / source, TARGET / page)
if broken:
    sys.exit("links that lead nowhere: " + ", ".join(broken))
