// SPDX-License-Identifier: Apache-2.0
// Everything that a program which trains with Tessera needs.
#pragma once

#include <tessera/base/error.hpp>
#include <tessera/base/view.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/config/config.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/plan/plan_text.hpp>
#include <tessera/process/run_main.hpp>
#include <tessera/process/runtime.hpp>
#include <tessera/random/fill.hpp>
#include <tessera/random/threefry.hpp>
#include <tessera/tensor/mesh.hpp>
#include <tessera/tensor/mesh_layout.hpp>
#include <tessera/tensor/redistribute.hpp>
#include <tessera/tensor/rules.hpp>
#include <tessera/tensor/sharded_tensor.hpp>
#include <tessera/tensor/verbs.hpp>
#include <tessera/train/trainer.hpp>
