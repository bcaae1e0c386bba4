"""The family table of a run, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from evalharness.analysis.completeness import Played
from evalharness.report.text import duration, printable


def _percent(value: float | None, interval: Sequence[float] | None = None) -> str:
    if value is None:
        return "-"
    text = f"{100 * value:5.1f}"
    if interval is not None:
        text += f" [{100 * interval[0]:.1f},{100 * interval[1]:.1f}]"
    return text


def _rates(entry: Mapping[str, Any], *names: str) -> list[str]:
    return [_percent(entry.get(name), entry.get(f"{name}_ci95")) for name in names]


def family_table(summary: Mapping[str, Any], titles: Mapping[str, str]) -> RenderableType:
    """Success, progress and grounding in percent, each with its 95 % interval; what the numbers are not, below."""
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("family", no_wrap=True)
    table.add_column("tasks", justify="right", min_width=6)
    for name in ("success %", "progress %", "grounding %"):
        table.add_column(f"{name} [95% CI]", no_wrap=True)
    for family, entry in summary["families"].items():
        count = str(Played(entry["n"], entry["expected"], entry["episodes"], summary["samples"]))
        rates = _rates(entry, "success_rate", "progress_rate", "grounding_accuracy")
        table.add_row(titles.get(family, family), count, *rates)
    if summary["held_out"]:
        score = summary["held_out"]
        table.add_section()
        table.add_row(
            Text("held-out", style="bold"),
            str(score["n"]),
            *_rates(score, "success_rate", "progress_rate"),
            "",
        )
    return Group(
        table,
        "",
        *(Text(note, style="dim") for note in notes(summary, titles)),
        *(Text(warning, style="yellow") for warning in warnings(summary, titles)),
    )


def notes(summary: Mapping[str, Any], titles: Mapping[str, str]) -> list[str]:
    """What the numbers are of; plain sentences."""
    found = [
        f"model {printable(summary['model']['name'], single_line=True)} · suite {summary['suite']} · "
        + (f"perturbation {summary['perturbation']} · " if summary["perturbation"] else "")
        + f"at most {summary['max_turns']} turns · {summary['turns']} turns played"
        + (
            f" in {duration(summary['wall_s'])}"
            if summary.get("sessions") == 1 and "wall_s" in summary
            else ""
        )
    ]
    tokens = summary["tokens"]
    if tokens["completion"]:
        reasoning = f" (reasoning: {tokens['reasoning']:,})" if tokens.get("reasoning") else ""
        found.append(f"tokens: {tokens['prompt']:,} prompt, {tokens['completion']:,} completion" + reasoning)
    if summary["turns"] and summary["format_error_turns"]:
        share = 100 * summary["format_error_turns"] / summary["turns"]
        found.append(f"format errors in {summary['format_error_turns']} turns ({share:.1f} %)")
    if summary["trimmed_episodes"]:
        found.append(f"{summary['trimmed_episodes']} episodes outgrew the model's context and lost old turns")
    if summary.get("tells_stop") is False:
        found.append(
            "invented observations are not comparable: this server does not say what stopped a reply, so those that a "
            "stop sequence cut off are not counted"
        )
    if cut := summary.get("reasoning_truncated_turns"):
        found.append(
            f"{cut} turns were cut off inside their reasoning: --max-tokens {summary.get('max_tokens')} is too few for "
            "this model, which counts reasoning and answer together"
        )
    if full := summary.get("context_full_episodes"):
        found.append(
            f"{full} episodes ended because the context was full; serve the model with a longer one "
            '(--vllm-args "--max-model-len 16384")'
        )
    if ours := [titles.get(f, f) for f, who in summary["labels"].items() if who == "ours"]:
        found.append(f"labels: ours for {', '.join(ours)}")
    if not summary["held_out"] and len(summary["families"]) > 1:
        found.append(f"held-out score withheld: {summary['held_out_withheld']}")
    return found + performance_lines(summary.get("performance"))


def warnings(summary: Mapping[str, Any], titles: Mapping[str, str]) -> list[str]:
    """What is missing from the numbers."""
    found = []
    for family, entry in summary["families"].items():
        title = titles.get(family, family)
        if entry["infrastructure_failures"]:
            found.append(
                f"{title}: {entry['infrastructure_failures']} episodes could not be played (infrastructure; see "
                "errors.jsonl); they are in no mean, and the same command tries them again"
            )
        elif entry["episodes"] < entry["episodes_selected"]:
            missing = entry["episodes_selected"] - entry["episodes"]
            found.append(
                f"{title}: {missing} {'episode is' if missing == 1 else 'episodes are'} still to play"
            )
    return found


_PARTS = {
    "model": "model",
    "waiting_for_model": "waiting for a place at the model",
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


def performance_lines(performance: Mapping[str, Any] | None) -> list[str]:
    """Where the time went, how near to the bound, what the server did, and the advice where there is one."""
    if performance is None or performance["efficiency"] is None:
        return []
    parts = sorted(performance["time"].items(), key=lambda part: -part[1])
    spent = ", ".join(f"{_PARTS.get(name, name)} {share:.0%}" for name, share in parts if share >= 0.005)
    lines = [f"efficiency {performance['efficiency']:.2f}, bound by {_BOUNDS[performance['bound']]}"]
    if spent:
        lines[0] += f" · time: {spent}"
    if server := performance["server"]:
        hits, expected = server["prefix_cache_hit_rate"], server.get("prefix_cache_expected")
        lines.append(
            f"server: {server['running_mean']:.0f} running, {server['waiting_mean']:.0f} waiting on average · "
            f"{server['prompt_tokens_per_s']:,.0f} prompt + {server['generation_tokens_per_s']:,.0f} new tokens/s"
            + (f" · prefix cache {hits:.0%}" if hits is not None else "")
            + (f" (own turns alone: {expected:.0%})" if hits is not None and expected is not None else "")
            + f" · KV cache up to {server['kv_cache_usage_peak']:.0%}"
        )
    lines += [
        printable(f"{event['event']} (after {duration(event['at_s'])})", single_line=True)
        for event in performance["events"]
    ]
    if performance["advice"]:
        lines.append(f"advice: {printable(performance['advice'], single_line=True)}")
    return lines


FLOOR_NOTE = (
    "floor: a random choice among the valid actions, which it is handed at every turn and a model is not; the interval "
    "holds the floor's own error, too"
)


def reference_table(summary: Mapping[str, Any], titles: Mapping[str, str]) -> RenderableType | None:
    """Score between floor (chance) and ceiling (best known plans), in percent, with the corrected score's 95 %
    interval; None where no reference is stored."""
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("family", no_wrap=True)
    table.add_column("rate", no_wrap=True)
    for column in ("floor", "score", "ceiling"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("chance-corrected [95% CI]", no_wrap=True)
    for family, entry in summary["families"].items():
        reference = entry.get("reference")
        if reference is None:
            continue
        for rate, name in (("success_rate", "success"), ("progress_rate", "progress")):
            table.add_row(
                titles.get(family, family) if name == "success" else "",
                name,
                _percent(reference["floor"][rate]),
                _percent(entry[rate]),
                _percent(reference["ceiling"][rate]),
                _percent(reference["chance_corrected"][rate], reference["chance_corrected_ci95"][rate]),
            )
    return Group(table, "", Text(FLOOR_NOTE, style="dim")) if table.row_count else None


def print_summary(console: Console, summary: Mapping[str, Any], titles: Mapping[str, str]) -> None:
    console.print(family_table(summary, titles))
    if (reference := reference_table(summary, titles)) is not None:
        console.print()
        console.print(reference)
