// SPDX-License-Identifier: Apache-2.0
// How the vector core and the cube core of a block take turns at a product.
//
//     flag      set by                                 waited for by
//     kReady    vector: the operands are stored        cube, before it reads them
//     kTaken    cube: the operands are in L1           vector, before it stores others
//     kFree     vector: the result may be overwritten  cube, before it stores it
//     kDone     cube: the result is stored             vector, before it reads it
//
// A product that no loop carries needs kReady and kDone alone: ready means free as well, done means taken.  kFree is
// there for products of which the vector core stores no operand, where an earlier result is read.
#pragma once

#include <string>

#include "codegen/ascend/emitter.h"
#include "codegen/ascend/products.h"

namespace uir::codegen::ascend {

/*! \brief Flags between the cores of a block (the hardware has 16, of which SyncAll takes 11 to 14). */
enum Handshake { kReady = 0, kTaken = 1, kFree = 2, kDone = 3 };

/*! \brief The line that sets a flag when all that a pipe was given is done. */
std::string SetLine(const std::string& pipe, Handshake flag);
/*! \brief The line that holds the core until a flag is up, and takes it down. */
std::string WaitLine(Handshake flag);

/*! \brief The vector core's part of a contraction: hands the operands over, and where no loop carries it, waits. */
void HandOver(Emitter& e, const Product& product);
/*! \brief Before the outermost loop that carries a product, and behind it. */
void OpenProduct(Emitter& e, const Product& product, int position);
void CloseProduct(Emitter& e, const Product& product, int position);

}  // namespace uir::codegen::ascend
