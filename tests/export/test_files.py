# SPDX-License-Identifier: Apache-2.0
"""Names of files and buffers."""

from __future__ import annotations

from uir_tvm.export.files import identifier, identifiers


def test_names_are_what_compilers_and_file_systems_take() -> None:
    assert identifier("layers.0/attention weights") == "layers_0_attention_weights"
    assert identifier("0_x") == "t_0_x" and identifier("") == "t" and identifier("__x__y") == "x_y"
    assert identifier("größe") == "gr_e", "C++ files are ASCII"
    assert identifier("for", reserved={"for"}) == "t_for"
    assert len(identifier("x" * 500)) == 60


def test_names_stay_apart() -> None:
    assert identifiers(["a.b", "a_b", "a/b"]) == {"a.b": "a_b", "a_b": "a_b_2", "a/b": "a_b_3"}
