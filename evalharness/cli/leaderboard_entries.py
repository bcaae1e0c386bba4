"""The runs of a leaderboard: those that are named, and those of submissions; verified on request."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from envs import specs
from evalharness.analysis.leaderboards import not_beside_published
from evalharness.analysis.scored_run import ScoredRun, Submitted, load_scored_run
from evalharness.analysis.standings import Verification
from evalharness.cli.common import data_folder, titles
from evalharness.errors import UserError
from evalharness.records.submission import Metadata, read_submission, submissions_in
from evalharness.report.live import watch
from evalharness.report.terminal import make_console, say
from evalharness.verify import verify
from evalharness.verify.remembered import remember, was_verified


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
        say(f"evalharness: {self.left_out[-1]}")


def read_entries(args: argparse.Namespace, own: Sequence[ScoredRun], *, published: bool) -> Entries:
    """Raises UserError where a run that is named cannot be verified, or nothing is left of the submissions."""
    entries = Entries()
    for run in own:
        if args.verify and not _holds(args, run.folder):
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
                _add(
                    entries,
                    args,
                    submission.run_folder(entry),
                    submission.metadata,
                    entry.name,
                    published=published,
                )
            except UserError as error:
                entries.leave_out(what, str(error))
    if folders and not entries.runs:
        raise UserError("no submission is left for the table")
    return entries


def _add(
    entries: Entries,
    args: argparse.Namespace,
    folder: Path,
    metadata: Metadata,
    name: str,
    *,
    published: bool,
) -> None:
    scored = load_scored_run(folder)
    if published and (why := not_beside_published(scored)):
        raise UserError(f"{why}; rank it with --no-published")
    if args.verify and not _holds(args, folder):
        raise UserError(f"its numbers do not follow from its actions; see: evalharness verify {folder}")
    submitter = ", ".join(filter(None, (metadata.organization, metadata.date)))
    entries.runs.append(replace(scored, submitted=Submitted(name, submitter, metadata.site)))
    entries.held_in[folder] = [family for family in metadata.held_in if family in specs()]
    known = args.verify or was_verified(folder)
    entries.verification[folder] = "verified" if known else "not verified"


def _holds(args: argparse.Namespace, folder: Path) -> bool:
    """Whether a run's numbers follow from its actions; replayed only where this machine has not done so yet."""
    if was_verified(folder):
        return True
    names, shown = titles(), make_console(stderr=True)
    verdict = verify(folder, data=data_folder(args), watch=lambda progress: watch(progress, names, shown))
    if verdict.verified:
        remember(folder, verdict.content)
    return verdict.verified
