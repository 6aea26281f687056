// SPDX-License-Identifier: Apache-2.0
// A launch on a device with pipes from its first step to its answer, with the times of launches like it.
#pragma once

#include <functional>
#include <string>

#include "device/engine/launch_state.h"

namespace uir::engine {

/*! \brief What a device does of a launch. */
struct LaunchSteps {
  /*! \brief Whether the launch asks for times alone, so that it may run without values. */
  bool times_only;
  /*! \brief By what its times are kept; empty where they are not. */
  std::function<std::string()> times_key;
  /*! \brief Leave nothing of the launch before; whether the next one has values. */
  std::function<void(bool)> reset;
  /*! \brief Run the launch; what went wrong, or empty. */
  std::function<std::string()> run;
  /*! \brief What it took, as JSON. */
  std::function<std::string()> modelled;
};

//! \brief Run a launch, or answer what one like it took.
//!
//! One that asks for times alone runs without values, and anew with them where scalar code looks at memory.
//! The caller holds `LaunchLock`.
//! \param answer gets all that the launch answers, as JSON.
//! \return 0, 1 where it has findings, 2 where something went wrong.
int WholeLaunch(LaunchState* state, const LaunchSteps& steps, std::string* answer);

}  // namespace uir::engine
