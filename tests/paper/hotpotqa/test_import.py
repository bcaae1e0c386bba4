"""Question files, the tar of abstracts, and pages of one's own."""

from __future__ import annotations

import bz2
import gzip
import json
import random
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from evalharness.cli import main
from evalharness.envs import specs
from evalharness.envs.base import ImportRefusedError
from evalharness.paper.hotpotqa import importer
from evalharness.paper.hotpotqa.importer import import_file
from evalharness.paper.hotpotqa.pages import Page, PageStore, PageStoreError
from evalharness.paper.hotpotqa.store_writer import StoreWriter
from evalharness.paper.hotpotqa.tasks import data_files

from .made_data import abstracts, questions, silent, write

SPECS = specs()
SPEC = SPECS["hotpotqa"]


def titles(store: PageStore) -> list[str]:
    return [title for (title,) in store._rows("SELECT title FROM pages ORDER BY id", ())]


def test_the_distractor_file_brings_questions_and_their_paragraphs(data: Path) -> None:
    tasks = SPEC.suites.load_tasks("hotpotqa", data, 0)
    assert len(tasks) == 400
    assert tasks[7].id == "hotpotqa/hotpotqa/0007"
    assert tasks[7].payload["supporting"] == ["Book 7", "Writer 7"]
    assert tasks[7].labels == "official"
    store = PageStore(data_files(data)[1])
    assert len(store) == 801
    assert tasks[7].payload["pages_sha256"] == store.sha256
    environment = SPEC.make(data)
    environment.reset(options={"task": tasks[7]})
    plan = environment.oracle()
    assert plan == ["search[Book 7]", "search[Writer 7]", "finish[Writer 7]"]
    infos = [environment.step(action)[4] for action in plan]
    assert infos[-1]["success"]
    assert infos[-1]["figures"] == {"supporting_facts": 1.0, "joint": 1.0}


def test_the_same_file_makes_the_same_store(tmp_path: Path, data: Path) -> None:
    import_file(tmp_path / "dev.json", tmp_path / "other", silent)
    assert PageStore(data_files(tmp_path / "other")[1]).sha256 == PageStore(data_files(data)[1]).sha256


def test_the_simplified_file_is_a_question_file_without_pages_or_supporting_facts(tmp_path: Path) -> None:
    simple = [{key: row[key] for key in ("question", "answer", "type")} for row in questions(5)]
    told = import_file(write(tmp_path / "simple.json", simple), tmp_path / "data", silent)
    assert any("supporting" in line for line in told)
    assert any("no pages" in line for line in told)
    pages = tmp_path / "pages.jsonl"
    pages.write_text(
        '{"title": "Book 1", "text": "Mr. X is odd. It is by Writer 1! Really? Yes.", "redirects": ["B1"]}\n'
    )
    import_file(pages, tmp_path / "data", silent)
    [task, *_] = SPEC.suites.load_tasks("hotpotqa", tmp_path / "data", 0)
    environment = SPEC.make(tmp_path / "data")
    environment.reset(options={"task": task})
    assert environment.step("search[b1]")[0].startswith("Mr. X is odd.")
    assert "figures" not in environment.step("finish[x]")[4]


@pytest.mark.data
def test_the_published_simplified_file_has_the_official_questions(data_source: Path, tmp_path: Path) -> None:
    path = data_source / "hotpotqa" / "hotpot_dev_v1_simplified.json"
    if not path.is_file():
        pytest.skip("no simplified question file")
    told = import_file(path, tmp_path / "data", silent)
    assert told[0].startswith("7,405 questions")
    assert not any("not comparable" in line for line in told)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_pages_of_ones_own_may_be_packed(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    lines = [
        {"title": "A", "sentences": ["One.", "Two."], "redirects": ["Aleph", "x" * 2_000]},
        {"title": "A", "sentences": ["Another page of that title."]},
        {"title": "a/../b", "text": [["Paragraphs.", " Of sentences."], ["More."]]},
        {"title": "", "text": "No title."},
        {"title": "y" * 2**20, "text": "Too long a title."},
        {"title": "half \ud800 of a pair", "text": "\ud800 x"},
    ]
    source = tmp_path / "pages"
    source.write_bytes(pack("\n".join(json.dumps(line) for line in lines).encode()))
    told = import_file(source, tmp_path / "data", silent)
    assert told[1].startswith("3 entries ")
    store = PageStore(data_files(tmp_path / "data")[1])
    assert titles(store) == ["A", "a/../b", "half ? of a pair"]
    found = store.find("aleph")
    assert found is not None
    assert found.sentences == ("One.", "Two.")
    assert not list(tmp_path.rglob("b"))


def test_the_tar_of_abstracts_is_imported_and_replaces_what_came_with_questions(
    tmp_path: Path, data: Path
) -> None:
    before = PageStore(data_files(data)[1]).sha256
    import_file(abstracts(tmp_path / "wiki.tar.bz2", 50), data, silent)
    store = PageStore(data_files(data)[1])
    assert len(store) == 150
    page = store.find("page 49 2")
    assert page == Page("Page 49 2", ("First of 2.", " Second."))
    # and the small store of a question file does not replace it
    told = import_file(tmp_path / "dev.json", data, silent)
    assert any("kept" in line for line in told)
    assert PageStore(data_files(data)[1]).sha256 == store.sha256 != before


def test_an_import_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = abstracts(tmp_path / "wiki.tar.bz2", 100)
    import_file(source, tmp_path / "whole", silent)
    data, unpacked = tmp_path / "data", []

    def stop(what: str, done: int, of: int | None) -> None:
        if len(unpacked) > 50:
            raise KeyboardInterrupt

    counted = importer._unpack
    monkeypatch.setattr(importer, "_unpack", lambda *told: unpacked.append(1) or counted(*told))
    with pytest.raises(KeyboardInterrupt):
        import_file(source, data, stop)
    assert not data_files(data)[1].exists()
    read = len(unpacked)
    told = import_file(source, data, silent)
    assert "60 parts" in told[0]
    assert len(unpacked) - read == 100 - 60
    whole, again = (PageStore(data_files(folder)[1]) for folder in (tmp_path / "whole", data))
    assert len(again) == 300
    assert again.sha256 == whole.sha256


def test_an_unfinished_store_of_another_source_is_thrown_away(tmp_path: Path) -> None:
    path = tmp_path / "pages.sqlite"
    first = StoreWriter(path, "one source")
    first.add([Page("Old", ("x",))])
    first.commit(1)
    first.close()
    with pytest.raises(PageStoreError, match="unfinished"):
        PageStore(first.part)
    second = StoreWriter(path, "another source")
    second.add([Page("New", ("x",))])
    second.finish()
    assert titles(PageStore(path)) == ["New"]
    assert [found.name for found in tmp_path.iterdir()] == ["pages.sqlite"]


BAD_FILES: dict[str, bytes] = {
    "empty": b"",
    "binary": bytes(range(256)) * 4,
    "truncated list": json.dumps(questions(3)).encode()[:200],
    "another list": b'[{"question": "Who?"}]',
    "a list of numbers": b"[1, 2]",
    "an empty list": b"[]",
    "a bad context": json.dumps([{**questions(1)[0], "context": [["a"]]}]).encode(),
    "a context with a title that is a number": json.dumps(
        [{**questions(1)[0], "context": [[1, ["a"]]]}]
    ).encode(),
    "a context with one string": json.dumps([{**questions(1)[0], "context": [["A", "a b"]]}]).encode(),
    "a context that is none": json.dumps([{**questions(1)[0], "context": None}]).encode(),
    "redirects that are no list": b'{"title": "A", "text": "B.", "redirects": "C"}\n',
    "no usable title": b'{"title": " ", "text": "B."}\n',
    "a supporting fact of two letters": json.dumps(
        [{**questions(1)[0], "supporting_facts": ["ab"]}]
    ).encode(),
    "a bad supporting fact": json.dumps([{**questions(1)[0], "supporting_facts": [7]}]).encode(),
    "lines without titles": b'{"name": "x"}\n',
    "a line cut off": b'{"title": "A", "text": "B."}\n{"title": "C", "te',
    "a title that is a number": b'{"title": 7, "text": "B."}\n',
    "a text that is a number": b'{"title": "A", "text": 7}\n',
    "deep nesting": b"[" * 200_000,
    "deep nesting in a line": b'{"title": ' + b"[" * 200_000,
    "truncated bzip2": bz2.compress(b'{"title": "A", "text": "B."}\n' * 10_000)[:60],
    "truncated gzip": gzip.compress(random.Random(0).randbytes(5_000))[:900],
    "not quite bzip2": b"BZh9" + b"x" * 100,
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_foreign_and_truncated_files_are_refused_in_one_line(
    name: str, tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [path.read_bytes() for path in data_files(data)]
    bad = tmp_path / "bad"
    bad.write_bytes(BAD_FILES[name])
    with pytest.raises(ImportRefusedError):
        import_file(bad, data, silent)
    assert [path.read_bytes() for path in data_files(data)] == before
    assert main(["data", "import", "hotpotqa", str(bad), "--data", str(data)]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_truncated_tar_is_refused_and_a_broken_file_in_it_named(tmp_path: Path) -> None:
    whole = abstracts(tmp_path / "wiki.tar.bz2", 60).read_bytes()
    (tmp_path / "cut.tar.bz2").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ImportRefusedError, match="cut"):
        import_file(tmp_path / "cut.tar.bz2", tmp_path / "data", silent)
    with pytest.raises(ImportRefusedError, match="file 6"):
        import_file(abstracts(tmp_path / "broken.tar.bz2", 9, broken=5), tmp_path / "data", silent)
    assert not data_files(tmp_path / "data")[1].exists()


@pytest.mark.parametrize("kept", [1, 1.3], ids=["between two files", "in a header"])
def test_a_tar_that_stops_where_a_file_ends_is_refused(tmp_path: Path, kept: float) -> None:
    """Packed anew afterwards, as a download through a proxy may be: the packing itself is whole."""
    whole = bz2.decompress(abstracts(tmp_path / "wiki.tar.bz2", 3).read_bytes())
    cut = whole[: int(kept * 2 * tarfile.BLOCKSIZE)]  # a file is a header and one block
    for name, content in (("cut.tar", cut), ("cut.tar.bz2", bz2.compress(cut))):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ImportRefusedError, match="cut off"):
            import_file(tmp_path / name, tmp_path / "data", silent)
    assert not data_files(tmp_path / "data")[1].exists()


def test_the_command_imports_and_says_what(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], clean_home: Path
) -> None:
    source = write(tmp_path / "dev.json", questions(3))
    assert main(["data", "import", "hotpotqa", str(source), "--json", str(tmp_path / "told.json")]) == 0
    out = capsys.readouterr().out
    assert "3 questions" in out
    assert "not comparable" in out
    assert json.loads((tmp_path / "told.json").read_text())["family"] == "hotpotqa"
    assert main(["data", "import", "babyai", str(source)]) == 2
    assert main(["data", "import", "hotpotqa", str(source), "--link"]) == 2
    assert main(["data", "import", "a", "b", "c"]) == 2


def test_data_status_says_what_of_it_is_there(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], clean_home: Path
) -> None:
    assert main(["data", "status", "--data", str(data)]) == 0
    assert "hotpotqa, suite hotpotqa: 400 of 7,405 tasks" in capsys.readouterr().out
    assert main(["data", "status", "--data", str(tmp_path / "none")]) == 0
    assert "evalharness data import hotpotqa FILE" in capsys.readouterr().out
    assert main(["data", "status", "--data", str(data), "--json", "-"]) == 0
    assert "hotpotqa" not in json.loads(capsys.readouterr().out)["families"]
