# SPDX-License-Identifier: Apache-2.0
"""Templates are filled in wholly, and with nothing that they do not have."""

from __future__ import annotations

import pytest
from uir_tvm.export.render import render


def test_fields() -> None:
    assert render("@a@ and @b_c@, @a@; user@host", {"a": "1", "b_c": "@a@"}) == "1 and @a@, 1; user@host"


@pytest.mark.parametrize("fields", [{}, {"a": "1", "b": "2"}])
def test_all_and_no_others(fields: dict[str, str]) -> None:
    with pytest.raises(AssertionError):
        render("@a@", fields)
