"""Read prompt texts of other groups' protocols that the user has imported into the data folder.

`importer` writes `DATA/protocols/NAME/texts.json`, with the texts by family and the hashes of the source files. The
licence is in the same folder.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.paths import data_folder
from evalharness.base.reading import read_json
from evalharness.protocol.prompt import ImportedTexts
from evalharness.protocol.published import NAME

FILE = "texts.json"
_LARGEST = 4 << 20
"""Largest size of texts.json in bytes; the longest one has 60 kB."""


def texts_folder(protocol: str) -> Path:
    """Return the folder of a protocol's texts. Raises UserError for an invalid name, which can come from a stranger's
    record."""
    if not re.fullmatch(NAME, protocol):
        raise UserError(f"--protocol: {protocol!a} is not a valid name of a protocol")
    return data_folder() / "protocols" / protocol


def texts_sha256(texts: Any) -> str:
    return hashlib.sha256(json.dumps(texts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def how_to_import(protocol: str) -> str:
    return (
        f"import them from a checkout of its authors: evalharness data protocols import {protocol} PATH; "
        "or play it in our wording: --own-words"
    )


def all_imported(protocol: str) -> Mapping[str, Any] | None:
    """Return texts.json; None if there is no such file. Raises UserError if it was changed after the import."""
    path = texts_folder(protocol) / FILE
    try:
        stored = read_json(path, _LARGEST)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}); {how_to_import(protocol)}") from None
    families = stored.get("families") if isinstance(stored, dict) else None
    if not isinstance(families, dict) or stored.get("sha256") != texts_sha256(families):
        raise UserError(f"{path} was changed after the import; {how_to_import(protocol)}")
    imported: Mapping[str, Any] = stored
    return imported


def read_imported_texts(protocol: str, family: str) -> ImportedTexts:
    """Return a family's texts. Raises UserError with the command that imports them."""
    stored = all_imported(protocol)
    if stored is None:
        raise UserError(
            f"--protocol {protocol}: its prompt texts are not imported; {how_to_import(protocol)}"
        )
    texts = stored["families"].get(family)
    if texts is None:
        has = ", ".join(sorted(stored["families"]))
        raise UserError(f"--protocol {protocol} has no prompt texts for {family}; it has them for {has}")
    return ImportedTexts(texts, texts_sha256(texts))
