"""What do our charts and pages look like, on light and on dark paper?"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.errors import FactError, UnknownName

Colour = Annotated[str, msgspec.Meta(pattern="^#[0-9a-f]{6}$")]


class Palette(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One colour for each role."""

    background: Colour
    ink: Colour
    muted: Colour
    grid: Colour
    rule: Colour
    wash: Colour
    utilization: Colour
    rfu_power: Colour
    rfu_counters: Colour
    gap: Colour
    target: Colour
    efficient: Colour
    moderate: Colour
    bottlenecked: Colour
    inefficient: Colour
    idle: Colour

    def roles(self) -> dict[str, str]:
        """Role to colour."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


class Theme(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The palettes with the type sizes that go with them; `name` is the palette in use."""

    version: int
    font: str
    text_px: float
    title_px: float
    subtitle_px: float
    light: Palette
    dark: Palette
    shapes: dict[str, str]
    name: Literal["light", "dark"] = "light"

    @property
    def palette(self) -> Palette:
        """The palette in use."""
        return self.light if self.name == "light" else self.dark

    def colour(self, role: str) -> str:
        """The colour of a role; a class we do not know is drawn in grey."""
        return self.palette.roles().get(role, self.palette.muted)

    def shape(self, role: str) -> str:
        """The shape of a class or measure."""
        return self.shapes.get(role, "stroke")

    def config(self) -> dict[str, Any]:
        """The Vega-Lite configuration of this theme."""
        p = self.palette
        words = {"labelFont": self.font, "titleFont": self.font, "labelFontSize": self.text_px}
        words |= {
            "titleFontSize": self.text_px,
            "labelColor": p.ink,
            "titleColor": p.muted,
            "titleFontWeight": "normal",
        }
        axis = words | {"domainColor": p.rule, "gridColor": p.grid, "tickColor": p.rule, "ticks": False}
        return {
            "background": p.background,
            "font": self.font,
            "padding": {"left": 8, "right": 12, "top": 10, "bottom": 8},
            "view": {"stroke": None},
            "axis": axis | {"labelPadding": 6, "titlePadding": 10},
            "legend": words | {"orient": "top", "symbolSize": 90, "title": None, "columnPadding": 18, "offset": 6},
            "header": words | {"title": None},
            "text": {"font": self.font, "fontSize": self.text_px, "color": p.ink},
            "title": {
                "font": self.font,
                "fontSize": self.title_px,
                "fontWeight": "bold",
                "color": p.ink,
                "anchor": "start",
                "frame": "bounds",
                "offset": 16,
                "subtitleFont": self.font,
                "subtitleFontSize": self.subtitle_px,
                "subtitleColor": p.muted,
                "subtitlePadding": 8,
                "lineHeight": self.title_px * 1.2,
                "subtitleLineHeight": self.subtitle_px * 1.35,
            },
        }


@cache
def load_theme(name: str = "light") -> Theme:
    """The theme called `light` or `dark`."""
    if name not in {"light", "dark"}:
        raise UnknownName("theme", name, ("light", "dark"))
    source = data_dir("gpuledger.report", "theme.toml")
    theme = msgspec.structs.replace(load_toml(source, Theme), name=name)
    colours = list(theme.palette.roles().values())
    if twice := sorted({c for c in colours if colours.count(c) > 1}):
        raise FactError(str(source), name, f"{', '.join(twice)} used for two roles", hint="give each role its own")
    return theme
