"""The runs of a leaderboard: those that are named, and those of submissions; verified on request."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.checks.verify.remembered import was_verified
from evalharness.cli.output import note, say
from evalharness.cli.verify import replayed, suites_on_request
from evalharness.envs import specs
from evalharness.records.submission import Submission, SubmittedRun, read_submission, submissions_in
from evalharness.results.leaderboard.leaderboards import not_beside_published, require_one_table
from evalharness.results.leaderboard.standing_rows import Benchmark
from evalharness.results.leaderboard.standings import Verification
from evalharness.results.scored_run import ScoredRun, Submitted, load_scored_run
from evalharness.suites.temporary import TemporarySuites


@dataclass
class Entries:
    """Everything that gets a row."""

    runs: list[ScoredRun] = field(default_factory=list)
    held_in: dict[Path, Sequence[str]] = field(default_factory=dict)
    verification: dict[Path, Verification] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def leave_out(self, what: str, why: str) -> None:
        """Of a submission one person's mistake must not keep the others from the table."""
        self.left_out.append(f"left out: {what}: {why}")
        note(f"{self.left_out[-1]}")


def read_entries(args: argparse.Namespace, own: Sequence[ScoredRun], published: Benchmark | None) -> Entries:
    """`published`: the rows that they are to stand beside.

    Raises UserError where a run that is named cannot be verified, or nothing is left of the submissions.
    """
    with suites_on_request(args) as suites:
        entries = Entries()
        for run in own:
            if args.verify and not _holds(args, run.folder, suites):
                raise UserError(
                    f"{run.folder}: its numbers do not follow from its actions; see: evalharness verify {run.folder}"
                )
            entries.runs.append(run)
            if args.verify or was_verified(run.folder):
                entries.verification[run.folder] = "verified"
        folders = submissions_in(args.submissions)
        for folder in folders:
            try:
                submission = read_submission(folder)
            except UserError as error:
                entries.leave_out(folder.name, str(error))
                continue
            for entry in submission.metadata.runs:
                what = f"{entry.name} ({folder.name}/{entry.folder})"
                try:
                    _add(entries, args, suites, submission, entry, published)
                except UserError as error:
                    entries.leave_out(what, str(error))
        if folders and not entries.runs:
            raise UserError("no submission is left for the table")
        return entries


def _add(
    entries: Entries,
    args: argparse.Namespace,
    suites: TemporarySuites,
    submission: Submission,
    entry: SubmittedRun,
    published: Benchmark | None,
) -> None:
    folder, metadata = submission.run_folder(entry), submission.metadata
    scored = load_scored_run(folder)
    if published and (why := not_beside_published(scored, published)):
        raise UserError(f"{why}; rank it with --no-published")
    if not published and entries.runs:
        # Before it is verified: nothing is replayed, and no suite made, for a row that cannot stand in the table.
        require_one_table([entries.runs[0], scored], None)
    if args.verify and not _holds(args, folder, suites):
        raise UserError(f"its numbers do not follow from its actions; see: evalharness verify {folder}")
    submitter = ", ".join(filter(None, (metadata.organization, metadata.date)))
    entries.runs.append(replace(scored, submitted=Submitted(entry.name, submitter, metadata.site)))
    entries.held_in[folder] = [family for family in metadata.held_in if family in specs()]
    known = args.verify or was_verified(folder)
    entries.verification[folder] = "verified" if known else "not verified"


def _holds(args: argparse.Namespace, folder: Path, suites: TemporarySuites) -> bool:
    """Whether a run's numbers follow from its actions; replayed only where this machine has not done so yet."""
    if was_verified(folder):
        return True
    say(f"verifying {folder}")
    return replayed(args, folder, suites).verified
