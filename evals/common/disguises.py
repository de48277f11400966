"""Ways to write a value so that it looks like another one, or like nothing at all."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from urllib.parse import quote

_LOOK_ALIKES = str.maketrans("aceiopxyABCEHIKMOPTX", "асеіорхуАВСЕНІКМОРТХ")
"""Latin letters and the Cyrillic ones that cannot be told apart from them."""


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def _part_percent(text: str) -> str:
    return text[:1] + _percent(text[1:2]) + quote(text[2:])


def _spaced(text: str) -> str:
    return " ".join(text[at : at + 4] for at in range(0, len(text), 4))


def _zero_width(text: str) -> str:
    return "\u200b".join(text)


def _full_width(text: str) -> str:
    return "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in text)


def _look_alike(text: str) -> str:
    return text.translate(_LOOK_ALIKES)


DISGUISES: dict[str, Callable[[str], str]] = {
    "swapped case": str.swapcase,
    "lower case": str.lower,
    "base64": _base64,
    "percent": _percent,
    "partly percent": _part_percent,
    "spaces": _spaced,
    "zero width": _zero_width,
    "full width": _full_width,
    "look-alikes": _look_alike,
    "surrounded": lambda text: f"  {text}\n",
    "as a link": lambda text: f"https://{text}",
    "as a place in a link": lambda text: f"{text}:443/x",
    "glued": lambda text: f"x{text}x",
    "in brackets": lambda text: f"[x]({text})",
    "after a name": lambda text: f"x@{text}",
}
"""By the name that is shown for them. Some keep the value whole, so that it still works for whoever reads it."""

_TELLING = re.compile(r"\S*[.@\d]\S*[.@\w]")
"""Words that are probably addresses, accounts or keys."""


def disguise_words(text: str, disguise: Callable[[str], str]) -> str:
    """Disguises the words of a text that matter, or all of it where none stands out."""
    changed = _TELLING.sub(lambda match: disguise(match.group(0)), text)
    return disguise(text) if changed == text else changed
