"""A word that was mistyped is answered with the one that was meant."""

from __future__ import annotations

import pytest

from evalharness.cli import main


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["rnu", "--model", "oracle"], "'run'"),
        (["server", "sttaus"], "'status'"),
        (["run", "--modle", "oracle"], "--model"),
        (["run", "--modle=oracle", "--lmit", "3"], "--model --limit"),
        (["refine", "trajectoris"], "'trajectories'"),
        (["report", "RUN", "--style", "papr"], "'paper'"),
        (["report", "RUN", "--outptu", "x"], "--output"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_one_that_was_meant(
    words: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert f"{meant}?" in said
    assert len(said.splitlines()) < 8, "the error is on the screen, and not above a page of usage"


@pytest.mark.parametrize(("words", "named"), [(["xyzzy"], "choose from"), (["run", "--xyzzy"], "--xyzzy")])
def test_a_word_that_is_near_to_nothing_is_only_refused(
    words: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(words)
    said = capsys.readouterr().err
    assert named in said
    assert "?" not in said


def test_a_parser_that_passes_options_on_still_may(capsys: pytest.CaptureFixture[str]) -> None:
    """What looks like an option and is a value is no mistake."""
    with pytest.raises(SystemExit) as ended:
        main(["run", "--vllm-args=--max-model-len 4096", "--help"])
    assert ended.value.code == 0
