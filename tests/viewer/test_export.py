"""The exported page: complete, without external references, and safe against text of episodes."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.errors import TrajectoryError
from agentgym_envs.viewer import api, export
from agentgym_envs.viewer.api import Viewer
from agentgym_envs.viewer.export import export_html, page_with
from agentgym_envs.viewer.index import EpisodeEntry, read_episode
from agentgym_envs.viewer.pages import PAGE, read_static

from .records import record, save

STATIC = Path(export.__file__).parent / "static"
EVIL = "</script><script>alert(1)</script><!-- <img src=http://evil.example/x> \ud800\u2028 ${x} \\u003c"


class Page(HTMLParser):
    """The elements of a page, and the text inside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.texts.append("")
        self._inside = True

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.texts[-1] += data

    def all(self, *tags: str) -> list[tuple[dict[str, str | None], str]]:
        found = zip(self.elements, self.texts, strict=True)
        return [(attributes, text) for (tag, attributes), text in found if tag in tags]

    @property
    def data(self) -> Any:
        ((_, text),) = [found for found in self.all("script") if found[0].get("id") == "data"]
        return json.loads(text)


@pytest.fixture
def viewer(tmp_path: Path) -> Viewer:
    first = record(EVIL, EVIL, EVIL, goal=EVIL, meta={"policy": EVIL, "step": 1})
    save(tmp_path / "a.jsonl", first, record("t/1", "go", seed=1), record("t/1", "go", seed=2))
    save(tmp_path / "b.jsonl", record("t/3"))
    found = Viewer([tmp_path])
    found.index.refresh()
    return found


def test_export_equals_server_responses(viewer: Viewer) -> None:
    entries = viewer.index.snapshot.entries[:2]
    heard = list[int]()
    data = Page(export_html(viewer, entries, heard.append)).data
    assert heard == [1, 2]
    assert [row["id"] for row in data["rows"]] == [0, 1]
    assert data["summary"]["count"] == 2
    assert data["summary"]["sources"] == [{"name": "a.jsonl", "kind": "trajectories", "count": 2}]
    assert data["episodes"]["0"]["turns"][0]["action"] == EVIL
    assert data["episodes"]["0"] == json.loads(json.dumps(viewer.episode(0)))
    assert data["episodes"]["1"]["siblings"] == []  # the other one is not exported
    assert data["panels"]["1"] == viewer.panels(1)
    assert data["tokens"] == {}
    assert data["training"] == viewer.training()


def test_exported_page_has_no_external_references(viewer: Viewer) -> None:
    page = Page(export_html(viewer, viewer.index.snapshot.entries))
    assert len(page.all("script")) == 1 + len(list(STATIC.glob("*.js")))
    for tag, attributes in page.elements:
        if source := attributes.get("src") or (attributes.get("href") if tag != "a" else None):
            assert source.startswith("data:"), (tag, source)
        assert attributes.get("href", "#")[:1] == "#" or tag == "link"  # type: ignore[index]
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
    code = "".join(text for attributes, text in page.all("style", "script") if attributes.get("id") != "data")
    assert not re.findall(r"@import|url\((?!data:)|https?://(?!www\.w3\.org/)", code)


def test_content_security_policy_allows_only_own_scripts(viewer: Viewer) -> None:
    page = Page(export_html(viewer, viewer.index.snapshot.entries))
    ((policy, _),) = [found for found in page.all("meta") if found[0].get("http-equiv")]
    rules = dict(rule.split(" ", 1) for rule in str(policy["content"]).split("; "))
    for tag in ("script", "style"):
        code = [text for attributes, text in page.all(tag) if attributes.get("id") != "data"]
        hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in code]
        assert rules[f"{tag}-src"].split() == [f"'sha256-{one}'" for one in hashes]
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    first = next(index for index, (tag, _) in enumerate(page.elements) if tag in ("script", "style"))
    assert [tag for tag, attributes in page.elements[:first] if attributes.get("http-equiv")] == ["meta"]


def test_episode_text_cannot_leave_its_data_element(viewer: Viewer) -> None:
    text = export_html(viewer, viewer.index.snapshot.entries)
    clean = page_with("{}")
    assert [tag for tag, _ in Page(text).elements] == [tag for tag, _ in Page(clean).elements]
    assert "evil.example" in text
    assert "<img" not in text


def test_page_references_each_static_file_once() -> None:
    page = (STATIC / PAGE).read_text()
    for kind, pattern in (("js", r'src="static/([^"]+)"'), ("css", r'href="static/([^"]+)"')):
        assert sorted(re.findall(pattern, page)) == sorted(path.name for path in STATIC.glob(f"*.{kind}"))


def test_script_with_closing_tag_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(name: str) -> tuple[bytes, str] | None:
        return (b"'</script>'", "text/javascript") if name == "app.js" else read_static(name)

    monkeypatch.setattr(export, "read_static", read)
    with pytest.raises(AssertionError, match=r"app\.js"):
        page_with("{}")


def test_data_precedes_the_scripts() -> None:
    page = page_with('{"here": 1}')
    assert page.index('id="data"') < page.index("getElementById")


def test_unreadable_episodes_are_left_out_and_paths_are_hidden(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(entry: EpisodeEntry) -> Any:
        if entry.id == 1:
            raise TrajectoryError("/home/user/file: odd")
        return read_episode(entry)

    monkeypatch.setattr(api, "read_episode", read)
    path = viewer.index.snapshot.files[0].path
    path.with_name("bad.jsonl").write_text('{"env_id": 1}\n')
    viewer.index._scan_again = 0.0
    entries = viewer.index.refresh().entries
    assert str(path.parent) in viewer.summary()["problems"][0]
    left_out = list[str]()
    text = export_html(viewer, entries, on_left_out=left_out.extend)
    data = Page(text).data
    assert [row["id"] for row in data["rows"]] == [0, 2, 3]
    assert list(data["episodes"]) == list(data["panels"]) == ["0", "2", "3"]
    assert data["summary"]["count"] == 3
    assert data["summary"]["problems"] == left_out == ["episode 1 could not be read and was left out"]
    assert str(path.parent) not in text and "/home/user" not in text
    assert [row["id"] for row in data["episodes"]["2"]["siblings"]] == []
