"""The journal of finished conversations after a kill, a full disk, a second writer."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refine_conversations import erring_conversation

from evalharness.base.errors import UserError
from evalharness.records.lines import LineFile, StoreError
from evalharness.training.datasets.conversation import write_data
from evalharness.training.datasets.journal import Journal
from evalharness.training.grounded.grounded import Order, is_made


@given(st.integers(0, 400))
def test_a_journal_torn_anywhere_keeps_its_whole_lines(cut: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal")
        journal = Journal(path, {"order": 1})
        for number in range(5):
            journal.add(str(number), {"text": "é\u202e\x00" * number})
        journal.close()
        raw = path.read_bytes()
        cut = min(cut, len(raw))
        path.write_bytes(raw[:cut])
        whole = raw[: cut + 1].count(b"\n")  # a line that lacks only its end is whole
        again = Journal(path, {"order": 1})
        assert list(again.done) == [str(number) for number in range(max(whole - 1, 0))]
        again.add("last", 1)
        again.close()
        assert list(Journal(path, {"order": 1}).done) == [*map(str, range(max(whole - 1, 0))), "last"]
        other = Journal(path, {"order": 2})
        assert other.done == {}
        other.close()


def test_a_journal_has_one_writer_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, {"order": 1})
    journal.add("a", 1)
    with pytest.raises(UserError, match="another evalharness"):
        Journal(path, {"order": 2})
    journal.add("b", 2)
    journal.close()
    again = Journal(path, {"order": 1})
    assert again.done == {"a": 1, "b": 2}
    again.remove()
    assert not path.exists()


def test_a_full_disk_is_said_and_loses_no_whole_line(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    path = tmp_path / "journal"
    journal = Journal(path, {"order": 1})
    journal.add("a", 1)
    journal.close()
    journal._lines = LineFile(full)
    with pytest.raises(StoreError, match=r"No space left.*run the same command again"):
        journal.add("b", 2)
    journal.close()
    assert Journal(path, {"order": 1}).done == {"a": 1}


def test_a_file_that_was_changed_is_not_taken_for_made(tmp_path: Path) -> None:
    order = Order(("pddl",), 100, 1)
    path = tmp_path / "data.jsonl"
    write_data(path, [erring_conversation()], {"order": asdict(order)})
    assert is_made(order, path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UserError, match="changed after it was made"):
        is_made(order, path)
