"""Hash the files of an agent's program: runs with different programs are runs of different agents.

The files of a Python program are its file, the package that contains this file, and the modules that it imports from
folders outside the installed packages.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evalharness.base.reading import read_bytes, sha256_of

OF_PROGRAMS = ("code_sha256", "command_sha256", "not_checked")
"""Keys of an agent's identity that describe its files."""
MOST_FILES = 10_000
"""Maximum number of files in one folder. A folder with more files is not a program and is not hashed."""
_PRODUCTS = (".pyc", ".log", ".jsonl", ".lock", ".pid", ".tmp")
"""Suffixes of files that programs write."""


@dataclass
class Program:
    files: dict[Path, str] = field(default_factory=dict)
    """File -> SHA-256; "" if the file cannot be read."""
    not_checked: list[str] = field(default_factory=list)
    """Paths that could not be hashed, and programs named without a path, such as `python`."""
    sha256: str | None = None
    """Hash of all files; None if no file could be hashed."""

    @classmethod
    def of(cls, paths: Iterable[Path]) -> Program:
        """Hash the files of the programs at `paths`. A path is a file or a folder."""
        program = cls()
        for path in paths:
            program._add(path.resolve())
        program.not_checked += sorted(str(file) for file, sha256 in program.files.items() if not sha256)
        if len(program.files) == 1:
            [program.sha256] = program.files.values()
        elif program.files:
            # Use names relative to the common folder, so that a program keeps its hash if it is moved.
            top = os.path.commonpath([file.parent for file in program.files])
            lines = [f"{os.path.relpath(file, top)} {sha256}\n" for file, sha256 in program.files.items()]
            whole = "".join(sorted(lines)).encode(errors="surrogateescape")
            program.sha256 = hashlib.sha256(whole).hexdigest()
        return program

    def find_edited(self) -> list[Path]:
        """Return the Python files that changed after they were hashed. The program may write its other files."""
        return [file for file, sha256 in self.files.items() if file.suffix == ".py" and _hash(file) != sha256]

    def _add(self, path: Path) -> None:
        package = _package_of(path)
        todo = [package or path]
        roots = [
            path if path.is_dir() else path.parent,
            *([package.parent] if package else []),
            *_find_import_folders(),
        ]
        while todo:
            module = todo.pop()
            try:
                files = set(_files_in(module)) if module.is_dir() else {module}
            except OSError:
                self.not_checked.append(str(module))
                continue
            new = files - self.files.keys()
            names = {name for file in new for name in _imports(file)}
            self.files |= {file: _hash(file) for file in new}
            todo += filter(None, (find_module(name, roots) for name in names))


def _hash(file: Path) -> str:
    try:
        return sha256_of(file)
    except OSError:
        return ""


def hash_command(words: Sequence[str]) -> tuple[dict[str, str], Program]:
    """Return word -> SHA-256 of the file, folder or module that it names, and the program with all files. A word can be
    a path, `OPTION=PATH`, or a module after `-m`. An empty folder, for output, is not hashed."""
    hashes, whole = dict[str, str](), Program()
    for number, word in enumerate(words):
        is_module = number > 0 and words[number - 1] == "-m"
        path = find_module(word, [Path.cwd()]) if is_module else _path_of_word(word)
        if number == 0 and os.sep not in word:
            whole.not_checked.append(word)  # a program that the PATH finds, such as `python`
        elif path is not None:
            program = Program.of([path])
            whole.files |= program.files
            whole.not_checked += program.not_checked
            if program.sha256:
                hashes[word] = program.sha256
        elif is_module:
            whole.not_checked.append(f"-m {word}")
    return hashes, whole


def _path_of_word(word: str) -> Path | None:
    for text in filter(None, (word, word.partition("=")[2])):
        try:
            if (path := Path(text)).is_file() or path.is_dir():
                return path
        except (OSError, ValueError):  # not a valid file name, for example too long
            continue
    return None


def find_module(name: str, roots: Iterable[Path]) -> Path | None:
    """Return the file or folder of a module, from the first folder in `roots` that contains the module."""
    for root in roots:
        path = root.joinpath(*name.split("."))
        if path.is_dir() and any(path.glob("*.py")):
            return path
        if (file := path.with_name(f"{path.name}.py")).is_file():
            return file
    return None


def _package_of(path: Path) -> Path | None:
    """Return the outermost package that contains `path`. Without a package, return a folder itself; None for a file."""
    package = path if path.is_dir() else None
    for folder in path.parents:
        if not (folder / "__init__.py").is_file():
            break
        package = folder
    return package


def _files_in(folder: Path) -> Iterator[Path]:
    """Yield all files except hidden files, output of programs, and run folders. Raises OSError above MOST_FILES."""
    count = 0
    for place, folders, names in os.walk(folder):
        if "manifest.json" in names:
            folders[:], names = [], []
        folders[:] = [name for name in folders if name[0] != "." and name != "__pycache__"]
        for name in names:
            if name[0] != "." and not name.endswith(_PRODUCTS):
                yield Path(place, name)
                count += 1
        if count > MOST_FILES:
            raise OSError(f"{folder} has more than {MOST_FILES} files")


def _find_import_folders() -> list[Path]:
    """Return the folders from which Python imports, except the standard library and installed packages."""
    installed = {"site-packages", "dist-packages"}
    standard = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
    paths = (Path(entry).resolve() for entry in sys.path)
    return [path for path in paths if path not in standard and installed.isdisjoint(path.parts)]


def _imports(file: Path) -> set[str]:
    """Return the modules that a Python file imports, except evalharness, whose version the manifest contains."""
    if file.suffix != ".py":
        return set()
    try:
        tree = ast.parse(read_bytes(file))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return {name.partition(".")[0] for name in names} - {"evalharness"}
