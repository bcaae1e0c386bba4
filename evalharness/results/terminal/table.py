"""Print a run's scores with notes and warnings. `score_table` builds the tables of scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.text import Text

from evalharness.base.terminal import line, plain_table, remark
from evalharness.base.text import duration, printable
from evalharness.records.format_trouble import cut_prompts
from evalharness.results.html.document import percent
from evalharness.results.score import make_halted_line
from evalharness.results.tabular.markup import markdown, markdown_text
from evalharness.results.tabular.text import print_table
from evalharness.results.task_range import list_changed_families
from evalharness.results.terminal.answers import answer_of_run
from evalharness.results.terminal.kinds import kinds_of, print_kinds
from evalharness.results.terminal.score_table import floor_table, score_tables

if TYPE_CHECKING:
    from evalharness.records.manifest import Manifest
    from evalharness.records.summary import FamilyRow, HeldOut, Performance, Summary


def _model_of(summary: Summary) -> str:
    name, run = summary.model.get("name"), summary.model.get("run_name")
    return printable(f"{run} (model {name})" if run else f"model {name}", single_line=True)


def notes(summary: Summary, titles: Mapping[str, str]) -> list[str]:
    """Return notes on how the run was played and what was counted: protocol, choice of tasks, errors, limits, data."""
    lines = [
        f"{_model_of(summary)} · suite {summary.suite} · "
        + (f"agent {printable(summary.agent, single_line=True)} · " if summary.agent else "")
        + (f"protocol {printable(summary.protocol, single_line=True)} · " if summary.protocol else "")
        + (f"perturbation {summary.perturbation} · " if summary.perturbation else "")
        + f"{_at_most(summary)} · {summary.turns} turns played"
        + (f" in {duration(summary.wall_s)}" if summary.sessions == 1 and summary.wall_s is not None else "")
    ]
    if limit := summary.first_tasks_only:
        lines.append(f"--limit {limit}: only the first tasks of each family; not representative (--draw is)")
    if sample := summary.sample:
        lines.append(
            f"--draw {sample}: tasks of each family drawn with seed {summary.sample_seed}, spread over kinds"
        )
    if subset := summary.subset:
        lines.append(
            f"--subset {subset}: tasks that represent the whole held-out score, by family, kind and difficulty; "
            "a gain in a kind without a task is not measured (most Jericho games; with a small N also BabyAI levels "
            "and ScienceWorld kinds)"
        )
    for family, draw in sorted((summary.draw or {}).items()):
        lines.append(
            f"{titles.get(family, family)}: {draw.tasks} tasks drawn from the suite with seed {draw.seed}"
        )
    lines += _protocol_lines(summary)
    lines += _figures(summary, titles)
    lines += _trials(summary, titles)
    lines += format_error_lines(summary)
    lines += _outside_lines(summary)
    if summary.trimmed_episodes:
        lines.append(
            f"{summary.trimmed_episodes} episodes became longer than the context; old turns were dropped"
        )
    if check := summary.repeat_check:
        lines.append(
            f"{check.asked} greedy replies were requested again at the end, one at a time; {check.differed} differed"
        )
    if summary.tells_stop is False:
        lines.append("invented observations not counted: the server sends no stop_reason")
    if cut := summary.reasoning_truncated_turns:
        lines.append(
            f"{cut} turns were cut off inside their reasoning: --max-tokens {summary.max_tokens} is too small for "
            "this model; the limit includes reasoning and answer"
        )
    if full := summary.context_full_episodes:
        lines.append(
            f"{full} episodes ended because the context was full; serve the model with a longer one "
            '(--vllm-args "--max-model-len 16384")'
        )
    if filtered := summary.content_filter_episodes:
        lines.append(
            f"{filtered} episodes ended because the server's content filter withheld a reply; each counts with its "
            "progress so far; the model did not refuse: serve it without the filter"
        )
    if halted := summary.simulator_halted_episodes:
        lines.append(make_halted_line(halted))
    if broken := [titles.get(family, family) for family in summary.halting_families or ()]:
        lines.append(
            f"every episode of {', '.join(broken)} ended so: repair the environment and play in a new folder "
            f"({summary.run}/workers.log has the errors)"
        )
    if ours := [titles.get(f, f) for f, who in summary.labels.items() if "ours" in who.split(",")]:
        lines.append(f"labels: ours for {', '.join(ours)}")
    if changed := list_changed_families(summary.labels, titles):
        lines.append(
            f"data changed: the tasks of {changed} are not the published ones (evalharness data verify)"
        )
    if not summary.held_out and not summary.held_out_estimate and len(summary.families) > 1:
        lines.append(f"held-out score withheld: {summary.held_out_withheld}")
    return lines


def _outside_lines(summary: Summary) -> list[str]:
    """Return lines with the model, tokens and cost that external agents report, and with how they ended episodes."""
    if (agent := summary.outside) is None:
        return []
    models = agent.said_models
    more = f" and {len(models) - 3} more" if len(models) > 3 else ""
    facts = [f"model {', '.join(models[:3])}{more}"] if models else []
    for what, count in (("prompt", agent.said_prompt_tokens), ("completion", agent.said_completion_tokens)):
        facts += [] if count is None else [f"{count:,} {what} tokens"]
    facts += [] if agent.said_cost is None else [f"cost {agent.said_cost:.4g}"]
    lines = [f"reported by the agent, not measured: {', '.join(facts)}"] if facts else []
    if agent.stopped:
        ways = ", ".join(f"{way.replace('_', ' ')} {count}" for way, count in agent.stopped.items())
        lines.append(f"episodes that the agent ended (scores include these): {ways}")
    if summary.agent_always_exits:
        lines.append(
            f"the agent's process ended in every episode; {summary.run}/agent.log has what it printed"
        )
    if again := agent.handed_out_again:
        were = "episode was" if again == 1 else "episodes were"
        lines.append(f"{again} {were} given to an agent again after a failure of infrastructure")
    return [printable(line, single_line=True) for line in lines]


def _protocol_lines(summary: Summary) -> list[str]:
    """Return lines with the score that another group's protocol reports, and about its random choice of games."""
    if (number := summary.protocol_number) is None:
        return (
            ["the protocol has no number of its own here (evalharness data protocols show)"]
            if summary.protocol
            else []
        )
    low, high = number.ci95
    lines = [
        f"the protocol's own number: {number.score} {100 * number.rate:.1f} % "
        f"[{100 * low:.1f}, {100 * high:.1f}], {number.games} games, each counted once"
    ]
    if number.drawn is not None and number.drawn95 is not None:
        least, most = number.drawn95
        games = sum(entry.expected for entry in summary.families.values())
        different = games * (1 - (1 - 1 / games) ** number.drawn)
        line = (
            f"the original protocol draws {number.drawn} games with replacement, about {different:.0f} different ones "
            f"of the {games} games"
        )
        if number.games == games:
            line += f": 95 of 100 such draws would give {100 * least:.1f} to {100 * most:.1f} %"
        lines.append(line)
    return lines


def format_error_lines(summary: Summary) -> list[str]:
    """Return a line that counts the turns with a format error, in total and by kind. A turn can have several kinds."""
    if not summary.turns or not summary.format_error_turns:
        return []
    share = 100 * summary.format_error_turns / summary.turns
    line = f"format errors in {summary.format_error_turns} of {summary.turns} turns ({share:.1f} %)"
    kinds = sorted((summary.format_error_kinds or {}).items(), key=lambda item: (-item[1], item[0]))
    listed = ", ".join(f"{kind.replace('_', ' ')} {count}" for kind, count in kinds)
    return [f"{line}: {listed}" if listed else line]


def token_lines(summary: Summary, titles: Mapping[str, str]) -> list[str]:
    tokens = summary.tokens
    if not tokens.completion:
        return []
    reasoning = f" (reasoning: {tokens.reasoning:,})" if tokens.reasoning else ""
    line = f"tokens: {tokens.prompt:,} prompt, {tokens.completion:,} completion" + reasoning
    return [line]


def _trials(summary: Summary, titles: Mapping[str, str]) -> list[str]:
    """Return a line per family with the success after each trial, if the agent tries a task again after a failure."""
    return [
        f"{titles.get(family, family)} solved within 1, 2, ... trials: "
        + ", ".join(f"{100 * share:.1f}" for share in row.success_by_trial)
        + " % (trials one after the other, with reflections; not Best-of-N)"
        for family, row in summary.families.items()
        if row.success_by_trial
    ]


def _figures(summary: Summary, titles: Mapping[str, str]) -> list[str]:
    """Return a line for each family that has measures besides the success and the progress rate."""
    lines = []
    for family, names in (summary.scores or {}).items():
        if (entry := summary.families.get(family)) is None:
            continue
        figures = entry.figures or {}
        parts = [
            f"{title} {percent(figures[name].mean, figures[name].ci95)} %"
            for name, title in (names.figures or {}).items()
            if name in figures
        ]
        if entry.mean_turns is not None:
            parts.append(f"{entry.mean_turns:.1f} turns an episode")
        if parts:
            text = f"{titles.get(family, family)}: {', '.join(parts)}"
            lines.append(printable(text, single_line=True))
    return lines


def _at_most(summary: Summary) -> str:
    """Return the turn limit, and the limits of families with a smaller one: `at most 30 turns (hotpotqa 6)`."""
    limits = summary.turn_limits or {}
    less = [f"{family} {limit}" for family, limit in limits.items() if limit != summary.max_turns]
    return f"at most {summary.max_turns} turns" + (f" ({', '.join(less)})" if less else "")


def warnings(summary: Summary, titles: Mapping[str, str]) -> list[str]:
    """Return warnings about episodes that were not played, and about failures of the server or the harness."""
    troubles = (
        summary.format_trouble, summary.refused_actions, summary.template_tokens, summary.find_unknown_marks
    )  # fmt: skip
    lines = [printable(trouble.said, single_line=True) for trouble in troubles if trouble]
    if summary.cut_from:
        cut = sum(entry.cut_episodes for entry in summary.families.values())
        lines.append(cut_prompts(cut, summary.cut_from))
    if stopped := summary.stopped:
        lines.append(printable(f"stopped early: {stopped}", single_line=True))
    for family, entry in summary.families.items():
        title = titles.get(family, family)
        if entry.infrastructure_failures:
            lines.append(
                f"{title}: {entry.infrastructure_failures} episodes could not be played (infrastructure; see "
                "errors.jsonl); excluded from scores; the same command tries them again"
            )
        elif entry.episodes < entry.episodes_selected:
            missing = entry.episodes_selected - entry.episodes
            lines.append(
                f"{title}: {missing} {'episode is' if missing == 1 else 'episodes are'} still to play"
            )
    return lines


FEW_KINDS = 8
"""Success by kind is printed without `--verbose` if a run has one family with at most this number of kinds."""

_PARTS = {
    "model": "model",
    "waiting_for_model": "waiting for a slot at the model",
    "environment": "environments",
    "starting_workers": "starting workers",
    "waiting_for_worker": "waiting for workers",
    "client": "harness",
}
_BOUNDS = {
    "model": "the model's server",
    "environments": "the environments",
    "longest_episode": "the longest episode",
}


def performance_lines(performance: Performance | None) -> list[str]:
    """Return lines about efficiency, shares of time, the load of the model server, and worker processes that died."""
    if performance is None or performance.efficiency is None:
        return []
    parts = sorted(performance.time.items(), key=lambda part: -part[1])
    spent = ", ".join(f"{_PARTS.get(name, name)} {share:.0%}" for name, share in parts if share >= 0.005)
    lines = [f"efficiency {performance.efficiency:.2f}, bound by {_BOUNDS[performance.bound]}"]
    if spent:
        lines[0] += f" · time: {spent}"
    if server := performance.server:
        hits, expected = server.prefix_cache_hit_rate, server.prefix_cache_expected
        lines.append(
            f"server: {server.running_mean:.0f} running, {server.waiting_mean:.0f} waiting on average · "
            f"{server.prompt_tokens_per_s:,.0f} prompt + {server.generation_tokens_per_s:,.0f} new tokens/s"
            + (f" · prefix cache {hits:.0%}" if hits is not None else "")
            + (f" (expected: {expected:.0%})" if hits is not None and expected is not None else "")
            + f" · KV cache up to {server.kv_cache_usage_peak:.0%}"
        )
    lines += [
        printable(f"{event.event} (after {duration(event.at_s)})", single_line=True)
        for event in performance.events
    ]
    return lines + lost_worker_lines(performance)


def lost_worker_lines(performance: Performance | None) -> list[str]:
    """Return a line that counts the environment processes that died; no line if none died."""
    if performance is None or not (lost := performance.lost_workers):
        return []
    were = "environment worker was" if lost == 1 else "environment workers were"
    return [f"{lost} {were} lost and replaced: see workers.log"]


def kinds_table(summary: Summary, titles: Mapping[str, str]) -> RenderableType | None:
    """Return a table of rates whose intervals have kinds of tasks as units; None if it would repeat `score_tables`."""
    table = plain_table("by kind", "kinds", gap=2)
    rows = []
    for title, entry in _with_held_out(summary, titles):
        by_task, intervals = (
            [getattr(entry, f"{measure}_rate_{name}") for measure in ("success", "progress")]
            for name in ("ci95", "ci95_by_kind")
        )
        if None not in intervals and intervals != by_task:
            rates = [
                percent(getattr(entry, f"{m}_rate"), i)
                for m, i in zip(("success", "progress"), intervals, strict=True)
            ]
            rows.append((title, str(entry.kinds), *rates))
    own_names = _map_own_names(summary, titles)
    names_by_row = [own_names.get(title, _USUAL) for title, *_ in rows]
    alike = names_by_row[0] if len(set(names_by_row)) == 1 else _USUAL
    for name in alike:
        table.add_column(f"{name} % [95 % CI]", no_wrap=True)
    for (title, *cells), names in zip(rows, names_by_row, strict=True):
        also = "" if names == alike else f" ({', '.join(names)})"
        table.add_row(title + also, *cells)
    return table if rows else None


_USUAL = ("success", "progress")


def _map_own_names(summary: Summary, titles: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Map the title of a family to its names for success and progress, if the family names these scores differently."""
    own = (summary.scores or {}).items()
    return {titles.get(family, family): (names.success, names.progress) for family, names in own}


def errors_table(summary: Summary, titles: Mapping[str, str]) -> RenderableType | None:
    """Return a table of the standard errors from choice of tasks and from attempts; None with one attempt per task."""
    table = plain_table("standard error, points", "attempts", "other tasks", "another run", gap=2)
    own_names = _map_own_names(summary, titles)
    for title, entry in _with_held_out(summary, titles):
        variances = (entry.success_rate_variance, entry.progress_rate_variance)
        for name, variance in zip(own_names.get(title, _USUAL), variances, strict=True):
            if variance is not None:
                table.add_row(
                    f"{title}, {name}",
                    f"{variance.repeats:g}",
                    f"{100 * variance.standard_error_tasks:.1f}",
                    f"{100 * variance.standard_error_runs:.1f}",
                )
    return table if table.row_count else None


def _with_held_out(summary: Summary, titles: Mapping[str, str]) -> list[tuple[str, FamilyRow | HeldOut]]:
    rows: list[tuple[str, FamilyRow | HeldOut]] = [
        (titles.get(family, family), entry) for family, entry in summary.families.items()
    ]
    return [*rows, ("held-out", summary.held_out)] if summary.held_out else rows


def print_summary(
    console: Console, summary: Summary, titles: Mapping[str, str], *, verbose: bool = False
) -> None:
    """Print the answer, the scores, notes and warnings, and the kinds of tasks of a single family. `verbose`: also
    floors and ceilings, all kinds of tasks, standard errors, the use of time, and the server's load."""
    console.print(line(answer_of_run(summary, titles), "bold"))
    for table in score_tables(summary, titles, verbose=verbose):
        print_table(console, table)
    performance = summary.performance
    more = performance_lines(performance) if verbose else lost_worker_lines(performance)
    for note in (*notes(summary, titles), *token_lines(summary, titles), *more):
        remark(console, note)
    for warning in warnings(summary, titles):
        console.print(Text(warning, style="yellow"))
    kinds = kinds_of(summary)
    if verbose:
        console.print()
        _print_more(console, summary, titles)
    if verbose or (len(summary.families) == 1 and all(len(scores) <= FEW_KINDS for scores in kinds.values())):
        print_kinds(console, kinds, titles)


def _print_more(console: Console, summary: Summary, titles: Mapping[str, str]) -> None:
    if (floors := floor_table(summary, titles)) is not None:
        print_table(console, floors)
    if (table := kinds_table(summary, titles)) is not None:
        console.print(table)
        remark(console, "intervals with kinds of tasks as units: they hold for other, similar kinds of tasks")
        console.print()
    if (errors := errors_table(summary, titles)) is not None:
        console.print(errors)


def summary_as_markdown(summary: Summary, manifest: Manifest) -> str:
    """Return the answer, notes, warnings and scores as Markdown."""
    titles = manifest.titles
    name = f"{manifest.run_name}: " if manifest.run_name else ""
    lines = [f"- {markdown_text(text)}" for text in (*notes(summary, titles), *warnings(summary, titles))]
    tables = [markdown(table).rstrip() for table in score_tables(summary, titles)]
    answer = f"**{markdown_text(name + answer_of_run(summary, titles))}**"
    return "\n\n".join([answer, "\n".join(lines), *tables]) + "\n"
