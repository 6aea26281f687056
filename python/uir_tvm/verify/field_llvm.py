# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of `field` in LLVM's own language, for functions that TVM compiles.

Every function here has its twin of the same name in `field` (or `field_domain`); tests hold them together.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from ..igraph import finite_field as field

#: What the names in the text stand for.
_NUMBERS = {
    "P": field.P,
    "Q": field.Q,
    "P2": field.P - 2,
    "Q2": field.Q - 2,
    "HALF": field.HALF,
    "SHIFT": field.SHIFT,
    "MASK": field.MASK,
    "NONE": field.NONE,
    "POS": field.POS_INF,
    "NEG": field.NEG_INF,
    "NAN": field.NAN,
    "TOP": field.TOP,
    "LOW": -field.TOP,
    "ONE": field.embed(1),
    "M1": field.MIX_1 - 2**64,
    "M2": field.MIX_2 - 2**64,
    "STEP": field.MIX_STEP - 2**64,
    "WORD": 2**32 - 1,
    "INTEGER": field.code_of("integer"),
}

_POWER = """
define linkonce_odr i64 @uir_field_power_{name}(i64 %base, i64 %exponent) {{
entry:
  br label %loop
loop:
  %r = phi i64 [ 1, %entry ], [ %r2, %loop ]
  %b = phi i64 [ %base, %entry ], [ %b2, %loop ]
  %e = phi i64 [ %exponent, %entry ], [ %e2, %loop ]
  %bit = and i64 %e, 1
  %odd = icmp ne i64 %bit, 0
  %rb = mul i64 %r, %b
  %rm = urem i64 %rb, {modulus}
  %r2 = select i1 %odd, i64 %rm, i64 %r
  %bb = mul i64 %b, %b
  %b2 = urem i64 %bb, {modulus}
  %e2 = lshr i64 %e, 1
  %done = icmp eq i64 %e2, 0
  br i1 %done, label %exit, label %loop
exit:
  ret i64 %r2
}}
"""

_TEXT = """
define linkonce_odr i64 @uir_field_pair(i64 %u, i64 %v, i1 %taint) alwaysinline {
  %zero = icmp eq i64 %u, 0
  %t = select i1 %zero, i64 0, i64 $NONE
  %w = select i1 %taint, i64 %t, i64 %v
  %s = shl i64 %u, $SHIFT
  %r = or i64 %s, %w
  ret i64 %r
}

define linkonce_odr i64 @uir_field_rank(i64 %x) {
  %u = ashr i64 %x, $SHIFT
  %big = icmp sgt i64 %u, $HALF
  %low = sub i64 %u, $P
  %c = select i1 %big, i64 %low, i64 %u
  %pos = icmp eq i64 %x, $POS
  %c1 = select i1 %pos, i64 $TOP, i64 %c
  %neg = icmp eq i64 %x, $NEG
  %c2 = select i1 %neg, i64 $LOW, i64 %c1
  ret i64 %c2
}

define linkonce_odr i64 @uir_field_neg(i64 %x) {
  %special = icmp slt i64 %x, 0
  %u = lshr i64 %x, $SHIFT
  %v = and i64 %x, $MASK
  %uz = icmp eq i64 %u, 0
  %um = sub i64 $P, %u
  %un = select i1 %uz, i64 0, i64 %um
  %vz = icmp eq i64 %v, 0
  %vt = icmp eq i64 %v, $NONE
  %vk = or i1 %vz, %vt
  %vm = sub i64 $Q, %v
  %vn = select i1 %vk, i64 %v, i64 %vm
  %s = shl i64 %un, $SHIFT
  %r = or i64 %s, %vn
  %nan = icmp eq i64 %x, $NAN
  %other = sub i64 -3, %x
  %sp = select i1 %nan, i64 $NAN, i64 %other
  %out = select i1 %special, i64 %sp, i64 %r
  ret i64 %out
}

define linkonce_odr i64 @uir_field_add(i64 %a, i64 %b) {
entry:
  %or = or i64 %a, %b
  %special = icmp slt i64 %or, 0
  br i1 %special, label %rare, label %regular
regular:
  %ua = lshr i64 %a, $SHIFT
  %ub = lshr i64 %b, $SHIFT
  %u0 = add i64 %ua, %ub
  %u1 = sub i64 %u0, $P
  %uc = icmp slt i64 %u1, 0
  %u = select i1 %uc, i64 %u0, i64 %u1
  %va = and i64 %a, $MASK
  %vb = and i64 %b, $MASK
  %v0 = add i64 %va, %vb
  %v1 = sub i64 %v0, $Q
  %vc = icmp slt i64 %v1, 0
  %v = select i1 %vc, i64 %v0, i64 %v1
  %na = icmp eq i64 %va, $NONE
  %nb = icmp eq i64 %vb, $NONE
  %n = or i1 %na, %nb
  %r = call i64 @uir_field_pair(i64 %u, i64 %v, i1 %n)
  ret i64 %r
rare:
  %as = icmp slt i64 %a, 0
  %bs = icmp slt i64 %b, 0
  %x = select i1 %as, i64 %a, i64 %b
  %both = and i1 %as, %bs
  %differ = icmp ne i64 %a, %b
  %clash = and i1 %both, %differ
  %an = icmp eq i64 %a, $NAN
  %bn = icmp eq i64 %b, $NAN
  %n1 = or i1 %an, %bn
  %n2 = or i1 %n1, %clash
  %y = select i1 %n2, i64 $NAN, i64 %x
  ret i64 %y
}

define linkonce_odr i64 @uir_field_sub(i64 %a, i64 %b) {
  %n = call i64 @uir_field_neg(i64 %b)
  %r = call i64 @uir_field_add(i64 %a, i64 %n)
  ret i64 %r
}

define linkonce_odr i64 @uir_field_mul(i64 %a, i64 %b) {
entry:
  %or = or i64 %a, %b
  %special = icmp slt i64 %or, 0
  br i1 %special, label %rare, label %regular
regular:
  %ua = lshr i64 %a, $SHIFT
  %ub = lshr i64 %b, $SHIFT
  %uu = mul i64 %ua, %ub
  %u = urem i64 %uu, $P
  %va = and i64 %a, $MASK
  %vb = and i64 %b, $MASK
  %vv = mul i64 %va, %vb
  %v = urem i64 %vv, $Q
  %na = icmp eq i64 %va, $NONE
  %nb = icmp eq i64 %vb, $NONE
  %n = or i1 %na, %nb
  %r = call i64 @uir_field_pair(i64 %u, i64 %v, i1 %n)
  ret i64 %r
rare:
  %an = icmp eq i64 %a, $NAN
  %bn = icmp eq i64 %b, $NAN
  %nan = or i1 %an, %bn
  %ra = call i64 @uir_field_rank(i64 %a)
  %rb = call i64 @uir_field_rank(i64 %b)
  %az = icmp eq i64 %ra, 0
  %bz = icmp eq i64 %rb, 0
  %z = or i1 %az, %bz
  %ap = icmp sgt i64 %ra, 0
  %bp = icmp sgt i64 %rb, 0
  %same = icmp eq i1 %ap, %bp
  %inf = select i1 %same, i64 $POS, i64 $NEG
  %x = select i1 %z, i64 0, i64 %inf
  %y = select i1 %nan, i64 $NAN, i64 %x
  ret i64 %y
}

define linkonce_odr i64 @uir_field_inverse(i64 %x) {
entry:
  %special = icmp slt i64 %x, 0
  br i1 %special, label %rare, label %regular
regular:
  %u = lshr i64 %x, $SHIFT
  %v = and i64 %x, $MASK
  %zero = icmp eq i64 %u, 0
  br i1 %zero, label %nothing, label %some
nothing:
  ret i64 $POS
some:
  %iu = call i64 @uir_field_power_p(i64 %u, i64 $P2)
  %none = icmp eq i64 %v, $NONE
  br i1 %none, label %tainted, label %clean
tainted:
  %ts = shl i64 %iu, $SHIFT
  %tr = or i64 %ts, $NONE
  ret i64 %tr
clean:
  %iv = call i64 @uir_field_power_q(i64 %v, i64 $Q2)
  %cs = shl i64 %iu, $SHIFT
  %cr = or i64 %cs, %iv
  ret i64 %cr
rare:
  %nan = icmp eq i64 %x, $NAN
  %y = select i1 %nan, i64 $NAN, i64 0
  ret i64 %y
}

define linkonce_odr i64 @uir_field_div(i64 %a, i64 %b) {
  %i = call i64 @uir_field_inverse(i64 %b)
  %r = call i64 @uir_field_mul(i64 %a, i64 %i)
  ret i64 %r
}

define linkonce_odr i64 @uir_field_power(i64 %x, i64 %exponent) {
entry:
  %negative = icmp slt i64 %exponent, 0
  %minus = sub i64 0, %exponent
  %n = select i1 %negative, i64 %minus, i64 %exponent
  br label %loop
loop:
  %r = phi i64 [ $ONE, %entry ], [ %r2, %more ]
  %b = phi i64 [ %x, %entry ], [ %b2, %more ]
  %e = phi i64 [ %n, %entry ], [ %e2, %more ]
  %end = icmp eq i64 %e, 0
  br i1 %end, label %exit, label %more
more:
  %bit = and i64 %e, 1
  %odd = icmp ne i64 %bit, 0
  %rb = call i64 @uir_field_mul(i64 %r, i64 %b)
  %r2 = select i1 %odd, i64 %rb, i64 %r
  %b2 = call i64 @uir_field_mul(i64 %b, i64 %b)
  %e2 = lshr i64 %e, 1
  br label %loop
exit:
  br i1 %negative, label %below, label %above
below:
  %i = call i64 @uir_field_inverse(i64 %r)
  ret i64 %i
above:
  ret i64 %r
}

define linkonce_odr i64 @uir_field_compare(i64 %a, i64 %b) {
  %an = icmp eq i64 %a, $NAN
  %bn = icmp eq i64 %b, $NAN
  %nan = or i1 %an, %bn
  %ra = call i64 @uir_field_rank(i64 %a)
  %rb = call i64 @uir_field_rank(i64 %b)
  %less = icmp slt i64 %ra, %rb
  %more = icmp sgt i64 %ra, %rb
  %x = select i1 %less, i64 -1, i64 0
  %y = select i1 %more, i64 1, i64 %x
  %z = select i1 %nan, i64 2, i64 %y
  ret i64 %z
}

define linkonce_odr i64 @uir_field_maximum(i64 %a, i64 %b) {
  %c = call i64 @uir_field_compare(i64 %a, i64 %b)
  %less = icmp eq i64 %c, -1
  %x = select i1 %less, i64 %b, i64 %a
  %nan = icmp eq i64 %c, 2
  %y = select i1 %nan, i64 $NAN, i64 %x
  ret i64 %y
}

define linkonce_odr i64 @uir_field_minimum(i64 %a, i64 %b) {
  %c = call i64 @uir_field_compare(i64 %a, i64 %b)
  %more = icmp eq i64 %c, 1
  %x = select i1 %more, i64 %b, i64 %a
  %nan = icmp eq i64 %c, 2
  %y = select i1 %nan, i64 $NAN, i64 %x
  ret i64 %y
}

define linkonce_odr i64 @uir_field_absolute(i64 %x) {
  %r = call i64 @uir_field_rank(i64 %x)
  %below = icmp slt i64 %r, 0
  %n = call i64 @uir_field_neg(i64 %x)
  %y = select i1 %below, i64 %n, i64 %x
  ret i64 %y
}

define linkonce_odr i64 @uir_field_bits(i64 %z, i64 %x) {
  %special = icmp slt i64 %x, 0
  %u = lshr i64 %x, $SHIFT
  %i = select i1 %special, i64 %x, i64 %u
  %s = add i64 %z, %i
  %z0 = mul i64 %s, $STEP
  %h0 = lshr i64 %z0, 30
  %z1 = xor i64 %z0, %h0
  %z2 = mul i64 %z1, $M1
  %h2 = lshr i64 %z2, 27
  %z3 = xor i64 %z2, %h2
  %z4 = mul i64 %z3, $M2
  %h4 = lshr i64 %z4, 31
  %z5 = xor i64 %z4, %h4
  ret i64 %z5
}

define linkonce_odr i64 @uir_field_of_bits(i64 %z) alwaysinline {
  %high = lshr i64 %z, 32
  %u = urem i64 %high, $P
  %low = and i64 %z, $WORD
  %v = urem i64 %low, $Q
  %s = shl i64 %u, $SHIFT
  %r = or i64 %s, %v
  ret i64 %r
}

define linkonce_odr i64 @uir_field_mix(i64 %code, i64 %x) {
  %z = call i64 @uir_field_bits(i64 %code, i64 %x)
  %r = call i64 @uir_field_of_bits(i64 %z)
  %nan = icmp eq i64 %x, $NAN
  %y = select i1 %nan, i64 $NAN, i64 %r
  ret i64 %y
}

define linkonce_odr i64 @uir_field_mix2(i64 %code, i64 %a, i64 %b) {
  %z0 = call i64 @uir_field_bits(i64 %code, i64 %a)
  %z = call i64 @uir_field_bits(i64 %z0, i64 %b)
  %r = call i64 @uir_field_of_bits(i64 %z)
  %an = icmp eq i64 %a, $NAN
  %bn = icmp eq i64 %b, $NAN
  %nan = or i1 %an, %bn
  %y = select i1 %nan, i64 $NAN, i64 %r
  ret i64 %y
}

define linkonce_odr i64 @uir_field_exponential(i64 %base, i64 %code, i64 %x) {
entry:
  %special = icmp slt i64 %x, 0
  br i1 %special, label %rare, label %regular
regular:
  %v = and i64 %x, $MASK
  %none = icmp eq i64 %v, $NONE
  br i1 %none, label %opaque, label %clear
clear:
  %p = call i64 @uir_field_power_p(i64 %base, i64 %v)
  %ps = shl i64 %p, $SHIFT
  %pr = or i64 %ps, $NONE
  ret i64 %pr
opaque:
  %m = call i64 @uir_field_mix(i64 %code, i64 %x)
  %mr = or i64 %m, $NONE
  ret i64 %mr
rare:
  %low = icmp eq i64 %x, $NEG
  %y = select i1 %low, i64 0, i64 %x
  ret i64 %y
}

define linkonce_odr i64 @uir_field_from_int(i64 %n) {
  %u0 = srem i64 %n, $P
  %uc = icmp slt i64 %u0, 0
  %u1 = add i64 %u0, $P
  %u = select i1 %uc, i64 %u1, i64 %u0
  %v0 = srem i64 %n, $Q
  %vc = icmp slt i64 %v0, 0
  %v1 = add i64 %v0, $Q
  %v = select i1 %vc, i64 %v1, i64 %v0
  %s = shl i64 %u, $SHIFT
  %r = or i64 %s, %v
  ret i64 %r
}

define linkonce_odr i64 @uir_field_to_int(i64 %x) {
  %z = call i64 @uir_field_bits(i64 $INTEGER, i64 %x)
  %h = lshr i64 %z, 1
  %nan = icmp eq i64 %x, $NAN
  %y = select i1 %nan, i64 0, i64 %h
  ret i64 %y
}
"""


def text(names: Iterable[str] | None = None) -> str:
    """The definitions of some functions (by default all) and of those that they call.

    Parameters
    ----------
    names : iterable of str
        As in the text, with ``uir_field_``.
    """
    known = _definitions()
    wanted: dict[str, None] = {}
    waiting = sorted(known if names is None else names)
    while waiting:
        name = waiting.pop()
        if name not in wanted:
            wanted[name] = None
            waiting += _NAME.findall(known[name].partition("{")[2])
    return "\n".join(known[name] for name in wanted)


_NAME = re.compile(r"@(\w+)")


@functools.cache
def _definitions() -> dict[str, str]:
    body = _TEXT
    # longest names first: $P is the beginning of $POS
    for name in sorted(_NUMBERS, key=len, reverse=True):
        body = body.replace(f"${name}", str(_NUMBERS[name]))
    for name, modulus in (("p", field.P), ("q", field.Q)):
        body += _POWER.format(name=name, modulus=modulus)
    parts = ["define" + part for part in body.split("\ndefine")[1:]]
    return {_NAME.findall(part)[0]: part for part in parts}
