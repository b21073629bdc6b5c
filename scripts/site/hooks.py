"""MkDocs hooks of this site: pages generated from the code, and links that leave docs/."""

from __future__ import annotations

from typing import Any

import commands
import flowchart
import reference
import repository
from mkdocs.structure.files import File, Files, InclusionLevel

_BOOST = {"install.md": 3.0, "tutorials/scalinginter.md": 2.0, "about/changelog.md": 0.3, "about/contributing.md": 0.5}
"""Pages that a search puts before or behind others with the same words."""


def on_config(config: Any) -> None:
    """Link to the repository, if its address is known, and draw flow charts without a script."""
    fence = {"name": "mermaid", "class": "flowchart", "format": flowchart.draw}
    config.mdx_configs["pymdownx.superfences"] = {"custom_fences": [fence]}
    if address := repository.address():
        config.repo_url, config.repo_name = address, address.rpartition("/")[2]


def on_files(files: Files, config: Any) -> Files:
    """Add the reference, the pages about the project, and a page for every file that a page links to."""
    sections = reference.sections()
    modules = _modules(sections)
    pages = {"reference/index.md": reference.index_page(sections), "reference/commands.md": commands.commands_page()}
    pages |= {row.uri: reference.module_page(row) for rows in sections.values() for row in rows}
    pages |= _about()
    for uri, text in pages.items():
        files.append(File.generated(config, uri, content=text))
    for path in sorted(_linked(files)):
        uri = repository.uri_of(path, modules)
        if repository.is_data(path):
            files.append(File.generated(config, uri, content=(repository.ROOT / path).read_text()))
        elif uri not in pages:
            page = File.generated(
                config, uri, content=repository.source_page(path), inclusion=InclusionLevel.NOT_IN_NAV
            )
            files.append(page)
    _extend_nav(config.nav, sections)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links to other files of the repository lead to their places in the site, and name its address."""
    if boost := _BOOST.get(page.file.src_uri):
        page.meta["search"] = {"boost": boost}
    text = repository.with_address(_with_notebook(markdown, page.file))
    return repository.relink(text, _origin(page.file.src_uri), page.file.src_uri, _modules(reference.sections()))


def _with_notebook(markdown: str, file: File) -> str:
    """The page with links to its notebook below the title, if it is one."""
    name = file.src_uri.removeprefix("notebooks/").removesuffix(".md")
    if name == "index" or not file.src_uri.startswith("notebooks/"):
        return markdown
    links = f"[Open in Colab]({repository.colab_link(name)}) · [Download the notebook]({name}.ipynb)"
    return markdown.replace("\n\n", f"\n\n{links}\n\n", 1)


def _modules(sections: dict[str, list[reference.Module]]) -> dict[str, str]:
    return {row.path: row.uri for rows in sections.values() for row in rows}


def _about() -> dict[str, str]:
    """The changelog and the like, which lie at the root of the repository."""
    root = repository.ROOT
    pages = {"about/changelog.md": (root / "CHANGELOG.md").read_text()}
    if (root / "CONTRIBUTING.md").exists():
        pages["about/contributing.md"] = (root / "CONTRIBUTING.md").read_text()
    texts = [f"## {name}\n\n```text\n{(root / name).read_text().rstrip()}\n```" for name in ("NOTICE", "LICENSE")]
    return pages | {"about/licence.md": "\n\n".join(["# Licence and notice", "Apache-2.0.", *texts])}


def _linked(files: Files) -> set[str]:
    """The files outside docs/ that pages link to."""
    return {
        path
        for file in files.documentation_pages()
        for path in repository.outward(file.content_string, _origin(file.src_uri))
    }


def _origin(uri: str) -> str:
    """The file of the repository that a page was made from."""
    if uri.startswith("source/"):
        return uri.removeprefix("source/").removesuffix(".md")
    root = {page: path for path, page in repository.ABOUT.items()}
    return root.get(uri, f"docs/{uri}")


def _extend_nav(nav: list[Any], sections: dict[str, list[reference.Module]]) -> None:
    """Put the reference's pages below its entry."""
    for entry in nav:
        if "Reference" in entry:
            below = [{title: [{row.name: row.uri} for row in rows]} for title, rows in sections.items()]
            entry["Reference"] = ["reference/index.md", {"The command line": "reference/commands.md"}, *below]
