// SPDX-License-Identifier: Apache-2.0
// The table of the classes of iOps that the BANG C printer knows.
#include "codegen/bang/ops.h"

namespace uir::codegen::bang {

namespace {

const OpRow kOps[] = {
    // clang-format off
    {"move", EmitMove},
    {"identity", EmitIdentity},
    {"sync", EmitSync},
    {"fill", EmitFill},
    {"unary", EmitUnary},
    {"binary", EmitBinary},
    {"compare", EmitCompare},
    {"select", EmitSelect},
    {"cast", EmitCast},
    {"reduce", EmitReduce},
    {"broadcast", EmitBroadcast},
    {"transpose", EmitTranspose},
    {"iota", EmitIota},
    {"gather", EmitGather},
    {"scatter", EmitScatter},
    {"contract", EmitContract},
    // clang-format on
};

}  // namespace

const OpRow& OpRowOf(const IOp& iop, const std::string& where) { return FindRow(kOps, iop, "BANG C", where); }

}  // namespace uir::codegen::bang
