"""Who says that a turn was wrong: a model, a person, the simulator; and how far to trust them. docs/judges.md.

`judging` asks a served model, `label_server` a person, `truth` is the simulator's rule; `agreement` compares any two.
`mtbench` grades answers to two-turn questions. All questions go through `evalharness.models.asking`.
"""

from evalharness.judge.agreement import Agreement, Counts, agreement_of, compare_raters, published_agreement
from evalharness.judge.draw import JudgedRun, load_turns
from evalharness.judge.judging import Judging, judge_run, judgements_of, judges_of, read_judge
from evalharness.judge.label_csv import labels_csv, read_labels_csv
from evalharness.judge.label_server import serve
from evalharness.judge.labels import LabelFolder, read_labels
from evalharness.judge.mtbench import Graded, Mtbench, run_mtbench
from evalharness.judge.questions import read_questions
from evalharness.judge.raters import agreements_in, read_raters
from evalharness.judge.tables import agreement_table, judgement_table, mtbench_table
from evalharness.judge.truth import RULES, truth
from evalharness.judge.verdict import KINDS, Rater, TurnKey, Verdict

__all__ = [
    "KINDS",
    "RULES",
    "Agreement",
    "Counts",
    "Graded",
    "JudgedRun",
    "Judging",
    "LabelFolder",
    "Mtbench",
    "Rater",
    "TurnKey",
    "Verdict",
    "agreement_of",
    "agreement_table",
    "agreements_in",
    "compare_raters",
    "judge_run",
    "judgement_table",
    "judgements_of",
    "judges_of",
    "labels_csv",
    "load_turns",
    "mtbench_table",
    "published_agreement",
    "read_judge",
    "read_labels",
    "read_labels_csv",
    "read_questions",
    "read_raters",
    "run_mtbench",
    "serve",
    "truth",
]
