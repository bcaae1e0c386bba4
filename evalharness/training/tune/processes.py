"""Several processes: which configuration of accelerate starts them, and how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.yaml_lines import load_yaml

SHIPPED = Path(__file__).parent / "accelerate"


def shipped() -> tuple[str, ...]:
    """Names of the configurations that come with this package."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.yaml")))


@dataclass(frozen=True)
class Launch:
    """A file of `accelerate config`, and how many processes it starts."""

    config: Path
    processes: int
    """Over all machines."""
    machines: int
    kind: str
    """accelerate's `distributed_type`."""
    fsdp: dict[str, Any]
    """accelerate's `fsdp_config`."""
    mpi: bool

    @property
    def shards(self) -> bool:
        """Whether each process keeps a piece of weights, gradients and optimiser, and not all of them."""
        return self.kind in ("FSDP", "DEEPSPEED")

    def words(self, python: list[str], script: list[str], *, cpu: bool, bf16: bool) -> list[str]:
        """The command that starts `script` in all processes of this machine."""
        if cpu and self.machines == 1 and self.processes > 1 and not self.mpi:
            # Of several CPU processes accelerate starts one alone where there is no MPI; torch starts them over gloo.
            launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(self.processes)]
            return [*python, "-m", *launcher, *script]
        launcher = ["accelerate.commands.launch", "--config_file", str(self.config.resolve())]
        number = ["--num_processes", str(self.processes), "--mixed_precision", "bf16" if bf16 else "no"]
        return [*python, "-m", *launcher, *number, *script]


def read_launch(config: Path | None, processes: int | None) -> Launch | None:
    """None where one process trains. `config` is a file or the name of a shipped one; `processes` overrides what it
    says. Raises UserError."""
    if config is None:
        if processes is None:
            return None
        raise UserError(f"--processes wants --accelerate-config (FILE, {', '.join(shipped())})")
    path = SHIPPED / f"{config}.yaml" if str(config) in shipped() else config
    if not path.is_file():
        raise UserError(
            f"--accelerate-config {config}: no such file (ours: {', '.join(shipped())}; or make one: accelerate config)"
        )
    found = load_yaml(path, f"--accelerate-config {path}")
    if not isinstance(found, dict):
        raise UserError(f"--accelerate-config {path} is no file of `accelerate config`")
    try:
        machines, number = (int(found.get(key) or 1) for key in ("num_machines", "num_processes"))
    except (TypeError, ValueError):
        raise UserError(
            f"--accelerate-config {path}: num_machines and num_processes are whole numbers"
        ) from None
    if (processes is not None and processes < 1) or number < 1:
        raise UserError("--processes is at least 1")
    fsdp = found.get("fsdp_config")
    return Launch(
        path,
        processes or number,
        machines,
        str(found.get("distributed_type") or "NO"),
        {str(key): value for key, value in fsdp.items()} if isinstance(fsdp, dict) else {},
        bool(found.get("mpirun_config")),
    )
