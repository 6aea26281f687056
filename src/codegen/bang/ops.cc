// SPDX-License-Identifier: Apache-2.0
/*!
 * \file ops.cc
 * \brief The table of the classes of iOps that the BANG C printer knows.
 */
#include "ops.h"

namespace uir {
namespace codegen {
namespace bang {

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

const OpRow& OpRowOf(const IOp& iop, const std::string& where) {
  for (const OpRow& row : kOps) {
    if (iop->op == row.op) return row;
  }
  CodegenError("The BANG C printer has no emitter for '" + std::string(iop->op) + "'.", where, "", "",
               "run this operator on the host");
}

}  // namespace bang
}  // namespace codegen
}  // namespace uir
