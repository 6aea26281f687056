# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations
from tvm import tirx
from tvm.tirx import PrimExpr
from .ops import MAGIC, MAGIC64, bits, cast, const_like, fma, from_bits, horner, let, mask, shift_left

_SIN = (-0.16666653752326965, 0.008332101628184319, -0.00019506842363625765)
_COS = (1.0, -0.5, 0.04166664555668831, -0.001388729433529079, 2.4429415134363808e-05)
import numpy as np
import mpmath
mpmath.mp.prec=300
def parts(v, dtype, n):
    out=[]
    for _ in range(n):
        c=float(dtype(float(v))); out.append(c); v=v-mpmath.mpf(c)
    return out
P32=parts(mpmath.pi/2,np.float32,3)
P64=parts(mpmath.pi/2,np.float64,2)
MODE="f64"
def reduce32(x, body):
    z=fma(x,const_like(x,0.6366197723675814),const_like(x,MAGIC))
    def f(z):
        def g(n):
            r=x
            for p in P32: r=fma(n,const_like(x,-p),r)
            return let(r,lambda r: let(bits(z),lambda q: body(q,r)))
        return let(z-const_like(z,MAGIC),g)
    return let(z,f)
def reduce64(x, body):
    def go(x):
        z=fma(x,const_like(x,0.6366197723675814),const_like(x,MAGIC64))
        def f(z):
            def g(n):
                r=x
                for p in P64: r=fma(n,const_like(x,-p),r)
                return let(cast(r,"float32"),lambda r: let(cast(bits(z),"int32"),lambda q: body(q,r)))
            return let(z-const_like(z,MAGIC64),g)
        return let(z,f)
    return let(cast(x,"float64"),go)
def window(k):
    v=mpmath.mpf(2)/mpmath.pi*mpmath.mpf(2)**k
    v=v-4*mpmath.nint(v/4)
    return parts(v,np.float64,2)
W=[(1.0,window(0)),(2.0**-42,window(42)),(2.0**-84,window(84))]
def reducefull(x, body):
    ax=tirx.abs(x)
    c1=ax>=const_like(x,2.0**44); c2=ax>=const_like(x,2.0**86)
    def sel(vals):
        d=[const_like(x,v,"float64") for v in vals]
        return tirx.Select(c2,d[2],tirx.Select(c1,d[1],d[0]))
    def go(y):
      return let(sel([w[1][0] for w in W]), lambda hi: let(sel([w[1][1] for w in W]), lambda lo: go2(y,hi,lo)))
    def go2(y,hi,lo):
        z=fma(y,hi,const_like(y,MAGIC64))
        def f(z):
            def g(n):
                r=fma(y,lo,fma(y,hi,-n if False else const_like(n,-1.0)*n))
                r=r*const_like(r,1.5707963267948966)
                return let(cast(r,"float32"),lambda r: let(cast(bits(z),"int32"),lambda q: body(q,r)))
            return let(z-const_like(z,MAGIC64),g)
        return let(z,f)
    return let(cast(x*tirx.Select(c2,const_like(x,W[2][0]),tirx.Select(c1,const_like(x,W[1][0]),const_like(x,1.0))),"float64"),go)
RED={"f32":reduce32,"f64":reduce64,"full":reducefull}
def core(q,r):
    def h(t):
        s=r*fma(horner(t,_SIN),t,const_like(t,1.0)); c=horner(t,_COS)
        y=tirx.Select(tirx.EQ(mask(q,1),const_like(q,0)),s,c)
        return from_bits(tirx.bitwise_xor(bits(y),shift_left(mask(q,2),30)))
    return let(r*r,h)
def sin(x):
    return let(x,lambda x: RED[MODE](x,core))
def cos(x):
    return let(x,lambda x: RED[MODE](x,lambda q,r: let(q+const_like(q,1),lambda q: core(q,r))))
