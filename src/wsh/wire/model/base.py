"""The base of everything that crosses the wire as JSON (pydantic): strict, frozen, unknown fields refused."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, RootModel

Format: TypeAlias = Literal["styled", "plain"]


class Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class Shown(BaseModel):
    """Response model; used for the schema only, not validated."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class AnyJson(RootModel[object]):
    """Whatever it is; the room that gets it checks it."""


class ErrorBody(Shown):
    code: str
    message: str
    hint: str | None = None
    details: dict[str, object] | None = None


class ErrorAnswer(Shown):
    """The one shape of every failure."""

    error: ErrorBody
