"""Run by the training environment's Python: what the trainer makes of jobs, as one JSON object.

python -I drive.py FOLDER_OF_THE_TRAINER batches JOB...     the collated batches of each, and their losses
python -I drive.py FOLDER_OF_THE_TRAINER train JOB...       the exit status of each
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.append(sys.argv[1])

import train  # type: ignore[import-not-found, unused-ignore]


def batches(path: Path) -> list[dict[str, Any]]:
    import torch  # type: ignore[import-not-found, unused-ignore]

    trainer = train.make_trainer(json.loads(path.read_text()), train.Wish())
    found = []
    for batch in trainer.get_train_dataloader():
        with torch.no_grad():
            loss = trainer.compute_loss(trainer.model, dict(batch), num_items_in_batch=1)
        found.append({name: value.tolist() for name, value in batch.items() if hasattr(value, "tolist")})
        found[-1]["loss"] = float(loss)
    return found


kind, jobs = sys.argv[2], [Path(name) for name in sys.argv[3:]]
answer = [batches(path) if kind == "batches" else train.main(path) for path in jobs]
print("answer: " + json.dumps(answer), flush=True)
