# SPDX-License-Identifier: Apache-2.0
"""Both sides of an identity are the same elements."""

from __future__ import annotations

import pytest
from uir_tvm.verify import check, same_elements

from .graphs import graph

RULES = ("form", "shape", "bounds", "identity")


def build(text: str):
    return graph(f"r = iPointer(reg, fp32, 64)\nfor k in 2 {{\n{text}\n}}")


PASS = [
    "identity [r[32*k; (4,8); (8,1)]], [r[32*k; (4,8); (8,1)]]",
    "identity [r[0; (4,8); (8,1)]], [r[0; (8,4); (4,1)]]",
    "identity [r[32*k; (2,8); (8,1)], r[32*k + 16; (2,8); (8,1)]], [r[32*k; (1,32); (32,1)]]",
]


@pytest.mark.parametrize("text", PASS)
def test_the_same_elements(text):
    assert not check(build(text), RULES)


def test_other_elements():
    (fault,) = check(build("identity [r[0; (4,8); (8,1)]], [r[16*k; (4,8); (8,1)]]"), RULES)
    assert fault.rule == "identity"
    assert fault.witness["k"] == 1
    assert fault.witness["element"] in {*range(16), *range(32, 48)}
    assert "use a move" in fault.remedy


def test_what_is_not_proved_is_a_fault(monkeypatch):
    def exhausted(question):
        raise same_elements.isl.Exhausted

    monkeypatch.setattr(same_elements.isl, "bounded", exhausted)
    (fault,) = check(build(PASS[1]), RULES)
    assert "It is not proved" in fault.what
