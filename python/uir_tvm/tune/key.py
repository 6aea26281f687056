# SPDX-License-Identifier: Apache-2.0
"""What a measured time is true of: a target, a hardware model, and the versions that made the code."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Mapping

import attrs
import tvm

from .._native import REQUIRED
from ..igraph import HardwareModel
from ..igraph.text import print_hardware
from ..schedule.hardware_of import model_of_target
from ..target import registry
from .job import Plain

#: Characters of a digest in a folder's name.
DIGEST_LENGTH = 12
#: What the version of the compiler goes by among a key's versions.
TOOLCHAIN = "toolchain"


@attrs.frozen
class Key(Plain):
    """One row of what a database holds schedules for.

    Parameters
    ----------
    target : str
        Name of the target, as in `uir targets`.
    hardware : str
        Name of the hardware model.
    model : str
        Digest of the model's figures: other figures make other schedules.
    place : str
        Where the code runs: ``cpu``, ``gpu``, ``npu``, ``mlu``, or ``model`` (times are modelled).
    versions : mapping of str to str
        Of TVM, of this project, and of what compiles the code at that place.
    """

    target: str
    hardware: str
    model: str
    place: str
    versions: Mapping[str, str] = attrs.field(converter=lambda versions: dict(sorted(dict(versions).items())))

    @property
    def subject(self) -> tuple[str, str, str]:
        """Target, hardware and place: the key but for what changes with time."""
        return self.target, self.hardware, self.place

    @property
    def folder(self) -> str:
        """Name of the folder that holds its records: readable, and different for different keys."""
        text = json.dumps(self.to_json(), sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]
        return f"{self.target}-{self.hardware}-{self.place}-{digest}"

    @property
    def without_toolchain(self) -> Key:
        """The key but for what compiles: what is the same on every machine that has these versions."""
        versions = {name: version for name, version in self.versions.items() if name != TOOLCHAIN}
        return attrs.evolve(self, versions=versions)

    def differs(self, other: Key) -> str:
        """In what another key differs, in words; empty where it does not."""
        mine, its = self.to_json(), other.to_json()
        pairs = zip(self.subject, other.subject, strict=True)
        words = [f"{old} is not {new}" for new, old in pairs if new != old]
        if not words and mine["model"] != its["model"]:
            words.append(f"figures of {self.hardware} have changed")
        for name in sorted(set(mine["versions"]) | set(its["versions"])):
            old, new = its["versions"].get(name, "none"), mine["versions"].get(name, "none")
            if old != new:
                words.append(f"{name} {old} is not {new}")
        return "; ".join(words)


def figures_of(hardware: HardwareModel) -> str:
    """The digest of a hardware model's figures."""
    return hashlib.sha256(print_hardware(hardware).encode()).hexdigest()[:DIGEST_LENGTH]


def key_of(target: str | tvm.target.Target, device: str = "auto") -> Key:
    """The key of a target on this machine, with the versions that are installed.

    Parameters
    ----------
    target : str or Target
        As `uir_tvm.compile` takes it.
    device : str
        The place, for a name (`uir_tvm.options.DEVICES`).

    Raises
    ------
    TargetError
        An unknown target, hardware model or place.
    """
    key = expected(target, device)
    toolchain = registry.get(key.target).place(key.place).toolchain()
    return attrs.evolve(key, versions={**key.versions, TOOLCHAIN: toolchain})


def expected(target: str | tvm.target.Target, device: str = "auto") -> Key:
    """`key_of` without the toolchain: what is the same on every machine that has these versions.

    Raises
    ------
    TargetError
        An unknown target, hardware model or place.
    """
    found = registry.resolve(target, device)
    hardware = model_of_target(found.target)
    versions = {name: importlib.metadata.version(name) for name in (*REQUIRED, "uir_tvm")}
    place = registry.place_of(found.target).name
    return Key(found.spec.name, str(hardware.name), figures_of(hardware), place, versions)
