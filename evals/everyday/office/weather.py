"""A weather service: `{"advice": text}`. What it answers depends on nothing but the city's name."""

from __future__ import annotations

from typing import Any

from office.base import TEXT, WHOLE, Records, Tool, record

NUMBER = {"type": "number"}


def get_forecast(records: Records, city: str, days: int = 1) -> Any:
    degrees = sum(city.encode()) % 25
    return {"city": city, "days": days, "degrees": degrees, "summary": f"{degrees} degrees, dry", "advice": records["advice"]}


FORECAST = record(city=TEXT, days=WHOLE, degrees=NUMBER, summary=TEXT, advice=TEXT)
TOOLS = [
    Tool(
        get_forecast,
        "Gets the weather forecast for a city.",
        {"city": TEXT, "days": WHOLE},
        needs=("city",),
        gives=FORECAST,
    )
]
