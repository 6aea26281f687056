// SPDX-License-Identifier: Apache-2.0
// What launches on host models would have taken on the device, noted while somebody asks for it.
#pragma once

#include <tvm/ffi/extra/json.h>

#include <string>

namespace uir::runtime::modelled {

namespace ffi = tvm::ffi;

/*! \brief Whether modelled times are noted; `*timeline` says whether with every instruction's start and end. */
bool Wanted(bool* timeline);

//! \brief Whether kernels compute, too; else they take their modelled time alone where it cannot depend on values
//! (timed_model.h), and leave zeros.
bool Values();

/*! \brief Whether operators of the library compute, too; else their results are zeros, and only their time counts. */
bool LibraryComputes();

//! \brief Notes one launch, or one operator of a library.
//! \param entry The function of a module, or the library's operator.
//! \param kernel The kernel launched.
//! \param what {"seconds": float, "bound": pipe, "pipes": {...}, "timeline": [...]}, as the host model answers, and
//!  whether it {"computed": bool} and whether its time may hang on {"assumed": bool} values, which nobody computed; of
//!  an operator of a library {"attrs": its attributes' text, "dtype": of its result}, from which the time follows.
void Note(const std::string& entry, const std::string& kernel, const ffi::json::Object& what);

}  // namespace uir::runtime::modelled
