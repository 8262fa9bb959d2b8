// SPDX-License-Identifier: Apache-2.0
// Replaces process/gpu_facts.cpp. The node has the GPUs of FAKE_GPUS, names with commas between
// them. A GPU named "broken" does not respond.
#include <cstdlib>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/process/gpu.hpp>

namespace tessera {
namespace {

std::vector<std::string> fake_gpus() {
  const char* text = std::getenv("FAKE_GPUS");
  if (text == nullptr || *text == '\0') return {};
  return split_text(text, ',');
}

int own_index = 0;  // Kokkos takes the first GPU if it finds no rank of a launcher

}  // namespace

std::optional<int> visible_gpus() { return static_cast<int>(fake_gpus().size()); }

std::optional<Gpu> own_gpu() {
  const std::vector<std::string> gpus = fake_gpus();
  const std::string& name = gpus[static_cast<std::size_t>(own_index)];
  if (name == "broken") throw Error(ExitCode::usage, "GPU {} is not responding", own_index);
  return Gpu{own_index, name, name, name};
}

void use_own_gpu() {}
bool pin(void*, Size) { return false; }
void unpin(void*) {}

}  // namespace tessera

// The linker makes calls of Kokkos::initialize() arrive here.
using Settings = Kokkos::InitializationSettings;
extern "C" void __real__ZN6Kokkos10initializeERKNS_22InitializationSettingsE(const Settings&);
extern "C" void __wrap__ZN6Kokkos10initializeERKNS_22InitializationSettingsE(
    const Settings& settings) {
  if (settings.has_device_id()) tessera::own_index = settings.get_device_id();
  __real__ZN6Kokkos10initializeERKNS_22InitializationSettingsE(settings);
}
