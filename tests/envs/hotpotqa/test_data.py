"""HotpotQA's data: question files, the tar of abstracts, pages of one's own; draws, turn limits, tables."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import random
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_runs import make_run
from rich.console import Console

from envs import specs
from envs.base import ImportRefusedError
from envs.hotpotqa import importer
from envs.hotpotqa.importer import import_file
from envs.hotpotqa.pages import Page, PageStore, PageStoreError
from envs.hotpotqa.store_writer import StoreWriter
from envs.hotpotqa.tasks import data_files
from evalharness import api
from evalharness.cli import main
from evalharness.config import RunConfig
from evalharness.errors import UserError
from evalharness.records.manifest import make_manifest, turn_limits
from evalharness.report.table import kinds_table
from evalharness.suites.selection import families_of_all, select

SPECS = specs()
SPEC = SPECS["hotpotqa"]


def silent(what: str, done: int, of: int | None) -> None:
    pass


def questions(count: int) -> list[dict[str, Any]]:
    """As the official distractor file has them."""
    return [
        {
            "_id": f"id{i}",
            "question": f"Who wrote book {i}?",
            "answer": f"Writer {i}",
            "type": "bridge",
            "level": "hard",
            "supporting_facts": [[f"Book {i}", 0], [f"Writer {i}", 1], [f"Writer {i}", 0]],
            "context": [
                [f"Book {i}", [f"Book {i} was written by Writer {i}.", " It is long."]],
                [f"Writer {i}", [f"Writer {i} wrote it.", " And no more."]],
                ["Shared", ["A page of all questions."]],
            ],
        }
        for i in range(count)
    ]


def write(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with 400 questions of the official make."""
    folder = tmp_path / "data"
    import_file(write(tmp_path / "dev.json", questions(400)), folder, silent)
    return folder


def abstracts(path: Path, files: int, *, broken: int | None = None) -> Path:
    """A tar as the official one: packed JSON lines in folders, the whole packed again."""
    with tarfile.open(path, "w:bz2") as tar:
        for number in range(files):
            lines = [
                json.dumps({"id": str(n), "title": f"Page {number} {n}", "text": [f"First of {n}.", " Second."],
                            "charoffset": [], "text_with_links": ["<a href=x>First</a>"]})
                for n in range(3)
            ]  # fmt: skip
            content = bz2.compress("\n".join(lines).encode() if number != broken else b"{")
            member = tarfile.TarInfo(f"enwiki/A{number:02d}/wiki_00.bz2")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


# --- importing ---------------------------------------------------------------------------------------------------


def test_the_distractor_file_brings_questions_and_their_paragraphs(data: Path) -> None:
    tasks = SPEC.load_tasks("hotpotqa", data, 0)
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
    [task, *_] = SPEC.load_tasks("hotpotqa", tmp_path / "data", 0)
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
    assert "3 entries without a usable title were left out" in told
    store = PageStore(data_files(tmp_path / "data")[1])
    assert [page.title for page in store.pages()] == ["A", "a/../b", "half ? of a pair"]
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
    assert any("it is kept" in line for line in told)
    assert PageStore(data_files(data)[1]).sha256 == store.sha256 != before


def test_an_import_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = abstracts(tmp_path / "wiki.tar.bz2", 100)
    import_file(source, tmp_path / "whole", silent)
    data, unpacked = tmp_path / "data", []

    def stop(what: str, done: int, of: int | None) -> None:
        if len(unpacked) > 50:
            raise KeyboardInterrupt

    counted = importer._unpacked
    monkeypatch.setattr(importer, "_unpacked", lambda *told: unpacked.append(1) or counted(*told))
    with pytest.raises(KeyboardInterrupt):
        import_file(source, data, stop)
    assert not data_files(data)[1].exists()
    read = len(unpacked)
    told = import_file(source, data, silent)
    assert told[0].startswith("going on after 60 parts")
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
    assert [page.title for page in PageStore(path).pages()] == ["New"]
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


# --- which tasks, how many turns ---------------------------------------------------------------------------------


def test_a_run_draws_300_questions_and_says_with_which_seed(data: Path) -> None:
    tasks = select(SPECS, "all", "hotpotqa", data=data)
    wanted = sorted(random.Random(233).sample(range(400), 300))
    assert [task.index for task in tasks] == wanted
    assert select(SPECS, "hotpotqa", "hotpotqa", data=data) == tasks
    other = select(SPECS, "all", "hotpotqa", data=data, suite_seed=5, questions="10")
    assert [task.index for task in other] == sorted(random.Random(5).sample(range(400), 10))
    assert len(select(SPECS, "all", "hotpotqa", data=data, questions="all")) == 400
    assert select(SPECS, "hotpotqa:0-1", "hotpotqa", data=data) == tasks[:2]
    left_out = next(i for i in range(400) if i not in wanted)
    [task] = select(SPECS, f"hotpotqa/hotpotqa/{left_out:04d}", "hotpotqa", data=data)
    assert task.index == left_out
    config = RunConfig(model="oracle", suite="hotpotqa", suite_seed=5, questions="10")
    manifest = make_manifest(config, other, SPECS, {"hotpotqa": "p"}, {}, data)
    assert manifest["draw"] == {"hotpotqa": {"tasks": 10, "seed": 5}}
    assert manifest["expected"] == {"hotpotqa": 10}
    assert manifest["held_out"] == {}
    assert manifest["provenance"]["hotpotqa"]["pages_sha256"] == PageStore(data_files(data)[1]).sha256


def test_all_means_the_416_tasks_and_the_family_is_added_by_name() -> None:
    assert families_of_all(SPECS, "open") == ["alfworld", "babyai", "jericho", "pddl", "sciworld"]
    assert families_of_all(SPECS, "hotpotqa") == ["hotpotqa"]
    added = select({f: SPECS[f] for f in ("hotpotqa", "pddl")}, "all,hotpotqa", "open", data=None, limit=2)
    assert [task.family for task in added] == ["hotpotqa"] * 2 + ["pddl"] * 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--suite", "agentboard", "--tasks", "hotpotqa"], "give --suite hotpotqa or --suite open"),
        (["--suite", "hotpotqa"], "evalharness data import hotpotqa FILE"),
        (["--suite", "hotpotpa"], "did you mean 'hotpotqa'"),
        (["--suite", "open", "--questions", "5"], "no family draws"),
        (["--suite", "hotpotqa", "--questions", "0"], "number above 0, or all"),
        (["--suite", "hotpotqa", "--tasks", "babyai"], "BabyAI has no suite 'hotpotqa'"),
    ],
)
def test_what_cannot_be_played_is_said(
    arguments: list[str], told: str, tmp_path: Path, clean_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "--model", "oracle", "--data", str(tmp_path / "none"), "-o", str(tmp_path / "run")]
    assert main([*command, *arguments]) == 2
    assert told in capsys.readouterr().err


def test_the_family_has_seven_turns_unless_the_user_says_otherwise() -> None:
    own, asked = (
        RunConfig(model="oracle", suite="open"),
        RunConfig(model="oracle", suite="open", max_turns=30),
    )
    assert own.turn_limit(SPEC) == 7
    assert own.turn_limit(SPECS["babyai"]) == 30
    assert asked.turn_limit(SPEC) == 30
    tasks = [SPECS[f].load_tasks("open", None, 0)[0] for f in ("babyai", "hotpotqa")]
    manifests = [make_manifest(config, tasks, SPECS, {}, {}) for config in (own, asked)]
    assert turn_limits(manifests[0]) == {"babyai": 30, "hotpotqa": 7}
    assert turn_limits(manifests[1]) == {"babyai": 30, "hotpotqa": 30}
    assert manifests[0]["digest"] != manifests[1]["digest"]
    assert own.folder() != asked.folder()
    # a run without the family is the same run whether the limit was asked for or not
    alone = [make_manifest(config, tasks[:1], SPECS, {}, {})["digest"] for config in (own, asked)]
    assert alone[0] == alone[1]


# --- a run, its tables, the leaderboard --------------------------------------------------------------------------


RUN = ["run", "--model", "oracle", "--suite", "hotpotqa", "--limit", "4"]


@pytest.fixture
def run_folder(data: Path, tmp_path: Path, clean_home: Path) -> Path:
    folder = tmp_path / "run"
    command = [*RUN, "--data", str(data), "-o", str(folder)]
    assert main(command) == 0
    return folder


def test_tables_say_em_and_f1(
    run_folder: Path, data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    capsys.readouterr()
    assert main([*RUN, "--data", str(data), "-o", str(run_folder)]) == 0
    shown = capsys.readouterr().out
    assert "EM % [95% CI]" in shown
    assert "F1 % [95% CI]" in shown
    assert "success %" not in shown
    assert "at most 7 turns" in shown
    assert "HotpotQA: 300 tasks drawn from the suite with seed 233" in shown
    assert "supporting pages opened 100.0" in " ".join(shown.split())
    assert "4/300" in shown
    summary = json.loads((run_folder / "summary.json").read_text())
    entry = summary["families"]["hotpotqa"]
    assert entry["figures"]["supporting_facts"]["mean"] == 1
    assert (entry["mean_turns"], summary["max_turns"]) == (3, 7)
    assert summary["scores"]["hotpotqa"]["success"] == "EM"


def test_kinds_and_repeats_say_em_and_f1(
    tmp_path: Path, clean_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["run", "--model", "random", "--suite", "open", "--tasks", "hotpotqa", "--limit", "12"]
    assert main([*run, "--samples", "2", "--temperature", "1", "-o", str(tmp_path / "run")]) == 0
    assert main(["show", str(tmp_path / "run"), "--verbose"]) == 0
    shown = capsys.readouterr().out
    assert "by kind" in shown
    assert "HotpotQA, EM" in shown
    assert "success %" not in shown
    assert "HotpotQA, success" not in shown


def test_kinds_of_families_with_other_names_say_which_are_which() -> None:
    rates = {f"{m}_rate{end}": value for m in ("success", "progress")
             for end, value in (("", 0.5), ("_ci95", [0.4, 0.6]), ("_ci95_by_kind", [0.3, 0.7]))}  # fmt: skip
    entry = {**rates, "kinds": 3}
    summary = {
        "families": {"babyai": entry, "hotpotqa": entry},
        "scores": {"hotpotqa": {"success": "EM", "progress": "F1"}},
        "held_out": None,
    }
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(kinds_table(summary, {"babyai": "BabyAI", "hotpotqa": "HotpotQA"}))
    header, *rows = console.export_text().splitlines()
    assert "success % [95% CI]" in header
    assert [row.split("  ")[0].strip() for row in rows] == ["BabyAI", "HotpotQA (EM, F1)"]


def test_the_leaderboard_has_a_table_of_its_own_for_it(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["leaderboard", "--table", "hotpotqa", str(run_folder), "--format", "csv"]) == 0
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    assert rows["AgentRefine"]["hotpotqa_success"] == "0.37"
    assert rows["AgentRefine"]["hotpotqa_progress"] == "0.446"
    assert rows["oracle"]["hotpotqa_success"] == "1.0"
    assert "not the whole family: HotpotQA 4/300" in rows["oracle"]["notes"]
    assert "HotpotQA: 300 tasks drawn with seed 233" in rows["oracle"]["notes"]
    assert not any(column.startswith("held_out") for column in rows["oracle"])
    for form in ("text", "md", "latex", "html"):
        assert main(["leaderboard", "--table", "hotpotqa", str(run_folder), "--format", form]) == 0
        shown = capsys.readouterr().out
        assert all(name in shown for name in ("EM", "F1", "AgentRefine", "live Wikipedia")), form
        assert "eld-out" not in shown


def test_the_main_leaderboard_leaves_it_out(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["leaderboard", str(run_folder)]) == 2
    assert "--table hotpotqa" in capsys.readouterr().err
    assert main(["leaderboard", "--table", "babyai"]) == 2
    other = make_run(tmp_path / "open", {"hotpotqa": [(True, 1.0)]}, suite="open")
    assert main(["leaderboard", "--table", "hotpotqa", str(other)]) == 2
    assert "suite open" in capsys.readouterr().err


def test_runs_with_other_turn_limits_are_not_compared(
    run_folder: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    longer = tmp_path / "longer"
    command = [*RUN, "--data", str(data), "-o", str(longer)]
    assert main([*command, "--max-turns", "30"]) == 0
    for again in ("compare", "analyze"):
        capsys.readouterr()
        assert main([again, str(run_folder), str(longer)]) == 2, again
        assert "turn limit" in capsys.readouterr().err
    assert main(command) == 2  # the folder holds a run of another limit
    with pytest.raises(UserError, match="table of its own"):
        api.leaderboard([run_folder])
    assert [row["name"] for row in api.leaderboard([run_folder], table="hotpotqa").rows()][-1] == "oracle"
    assert main(["plot", str(run_folder), "-o", str(tmp_path / "plots")]) == 0
    with pytest.raises(UserError, match="turn limit"):
        api.leaderboard([run_folder, longer], published=False, table="hotpotqa")
