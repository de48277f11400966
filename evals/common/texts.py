"""Comparing texts that travelled through YAML, JSON and frames.

The attacker's text is folded by the package's YAML, escaped by JSON, and may be escaped again on its way into a prompt. Only
letters and digits survive all of that, so they alone are compared. This decides when the hostile model has read the text; it
has nothing to do with how Palyra compares. It also finds the name of the variable that Palyra holds a result in.
"""

from __future__ import annotations

import html
import json
import re
from functools import lru_cache

_ESCAPE = re.compile(r'\\(u[0-9a-fA-F]{4}|[nrtbf"\\/])')
_VARIABLE = re.compile(r'"variable"\s*:\s*"(\$v\d+)"')
_SHORTEST = 12
"""Fewer letters and digits than this prove nothing."""


@lru_cache(maxsize=512)
def letters(text: str) -> str:
    """The letters and digits of a text, in lower case."""
    return "".join(character for character in text.lower() if character.isalnum())


def variables_in(shown: str) -> list[str]:
    """The variables that a result says it is held in."""
    return _VARIABLE.findall(shown)


def _unescaped(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        try:
            return json.loads(f'"{match.group(0)}"')
        except ValueError:
            return " "

    return _ESCAPE.sub(plain, text)


def appears_in(needle: str, text: str) -> bool:
    """Whether the whole of a text stands in another, however that was escaped."""
    wanted = letters(needle)
    if len(wanted) < _SHORTEST:
        return False
    once = _unescaped(text)
    readings = (text, once, _unescaped(once), html.unescape(once))
    return any(wanted in letters(reading) for reading in readings)
