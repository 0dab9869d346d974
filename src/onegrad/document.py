"""What can be written down: the nouns as JSON, TOML and a content hash that is the same everywhere."""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from onegrad import _checks
from onegrad.errors import InputError

# Part of every hash: raise it when the meaning of a written problem changes.
VOCABULARY = "onegrad-1"

D = TypeVar("D", bound="Document")


def refuse_unnamed(name: str, value: Any) -> Any:
    raise InputError(
        f"{name} is a {type(value).__name__} without a name, so it has no JSON and no hash; "
        "register it under a name first (og.register_activation, og.register_function) or use a Mixture"
    )


class Document:
    """A frozen dataclass that can be written as a JSON object with its fields as keys, and read back.

    `kind` is written beside the fields where several nouns may stand in one place (targets).
    """

    kind: ClassVar[str | None] = None

    def to_dict(self, unnamed: Callable[[str, Any], Any] = refuse_unnamed) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts. `unnamed` decides about what is none of these."""
        fields = dataclasses.fields(self)  # pyright: ignore[reportArgumentType]
        plain = {f.name: _plain(f.name, getattr(self, f.name), unnamed) for f in fields}
        return plain if self.kind is None else {"kind": self.kind, **plain}

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, shortest round-trip floats."""
        return canonical(self.to_dict())

    @property
    def content_hash(self) -> str:
        """SHA-256 of the canonical JSON and the vocabulary's version, 64 hex digits."""
        return digest(self.to_dict())

    @classmethod
    def from_json(cls: type[D], text: str) -> D:
        try:
            mapping = json.loads(text)
        except json.JSONDecodeError as error:
            raise InputError(f"text must be JSON written by to_json, but {error}") from None
        return cls.from_dict(mapping)

    @classmethod
    def from_dict(cls: type[D], mapping: Mapping[str, Any], where: str = "") -> D:
        """Read `to_dict`'s form; unknown and missing keys are refused. `where` is used in messages."""
        where = where or cls.__name__
        if not isinstance(mapping, Mapping):
            raise _checks.refuse(where, "a table of keys", mapping)
        fields = dataclasses.fields(cls)  # pyright: ignore[reportArgumentType]
        given = {key: value for key, value in mapping.items() if key != "kind" or not cls.kind}
        _checks.known_keys(where, given, [f.name for f in fields])
        for f in fields:
            required = f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
            if required and f.name not in given:
                raise InputError(f'{where} needs the key "{f.name}"')
        return cls(**cls.decode(given))

    @classmethod
    def decode(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Turn nested tables into nouns; nouns that hold nouns say how."""
        return given


def canonical(plain: Any) -> str:
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(plain: Any) -> str:
    return hashlib.sha256(f"{VOCABULARY}:{canonical(plain)}".encode()).hexdigest()


def _plain(name: str, value: Any, unnamed: Callable[[str, Any], Any]) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return [_plain(name, item, unnamed) for item in value]
    if isinstance(value, Document):
        return value.to_dict(unnamed)
    return unnamed(name, value)
