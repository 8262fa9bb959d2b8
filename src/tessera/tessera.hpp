// SPDX-License-Identifier: Apache-2.0
// Everything that a program which trains with Tessera needs.
#pragma once

#include <tessera/array/inspect.hpp>
#include <tessera/array/redistribute.hpp>
#include <tessera/array/sharded_tensor.hpp>
#include <tessera/array/verbs.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/view.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/config/config.hpp>
#include <tessera/mesh/mesh.hpp>
#include <tessera/mesh/mesh_layout.hpp>
#include <tessera/mesh/rules.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/plan/plan_text.hpp>
#include <tessera/process/run_main.hpp>
#include <tessera/process/runtime.hpp>
#include <tessera/random/fill.hpp>
#include <tessera/random/threefry.hpp>
#include <tessera/train/trainer.hpp>
