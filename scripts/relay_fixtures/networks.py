# SPDX-License-Identifier: Apache-2.0
"""Small networks of Relay as its users built them: TVM's own test networks, and an encoder."""

import math

import numpy as np
from tvm import relay as R
from tvm.relay import testing


def resnet():
    return testing.resnet.resnet(
        units=[2, 2, 2, 2],
        num_stages=4,
        filter_list=[8, 8, 16, 16, 32],
        num_classes=10,
        data_shape=(1, 3, 16, 16),
        bottle_neck=False,
    )


def mobilenet():
    return testing.mobilenet.mobile_net(num_classes=10, data_shape=(1, 3, 32, 32), alpha=0.125)


def lstm():
    return testing.lstm.get_net(3, 8, 1, "float32")


def _linear(x, name, size, out):
    weight, bias = R.var(name + "_weight", shape=(out, size)), R.var(name + "_bias", shape=(out,))
    return R.nn.bias_add(R.nn.dense(x, weight), bias)


def _norm(x, name, size):
    return R.nn.layer_norm(x, R.var(name + "_gamma", shape=(size,)), R.var(name + "_beta", shape=(size,)))


def _heads(x, tokens, heads, width):
    return R.transpose(R.reshape(x, (tokens, heads, width)), (1, 0, 2))


def bert(tokens=6, size=16, heads=2, layers=2, vocabulary=16):
    ids = R.var("ids", shape=(1, tokens), dtype="int32")
    table = R.var("embedding_weight", shape=(vocabulary, size))
    places = R.var("positions_weight", shape=(tokens, size))
    x = R.add(R.take(table, ids, axis=0), R.expand_dims(places, 0))
    x = _norm(R.reshape(x, (-1, size)), "embedding", size)
    half = R.const(np.float32(0.5))
    for layer in range(layers):
        name = f"layer{layer}_"
        q, k, v = (_heads(_linear(x, name + n, size, size), tokens, heads, size // heads) for n in "qkv")
        scores = R.divide(R.nn.batch_matmul(q, k), R.const(np.float32(math.sqrt(size // heads))))
        mixed = R.nn.batch_matmul(R.nn.softmax(scores), R.transpose(v, (0, 2, 1)))
        mixed = R.reshape(R.transpose(mixed, (1, 0, 2)), (tokens, size))
        x = _norm(R.add(x, R.nn.dropout(_linear(mixed, name + "o", size, size))), name + "first", size)
        wide = _linear(x, name + "up", size, 2 * size)
        gelu = R.multiply(
            R.multiply(wide, half),
            R.add(R.const(np.float32(1)), R.erf(R.multiply(wide, R.const(np.float32(math.sqrt(0.5)))))),
        )
        x = _norm(R.add(x, _linear(gelu, name + "down", 2 * size, size)), name + "second", size)
    body = R.reshape(x, (1, tokens, size))
    return R.Function(R.analysis.free_vars(body), body)


#: Name -> how it is built, and the inputs that are no weights.
NETWORKS = {
    "resnet": (resnet, {"data"}),
    "mobilenet": (mobilenet, {"data"}),
    "lstm": (lstm, {"data"}),
    "bert": (bert, {"ids"}),
}
