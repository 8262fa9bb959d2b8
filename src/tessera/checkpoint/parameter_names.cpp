// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/checkpoint/parameter_names.hpp>

namespace tessera {
namespace {

/// The name of a parameter in PyTorch. `transposed`: a matrix is transposed.
struct PytorchName {
  std::string_view name, there;
  bool transposed = false;
};
constexpr std::array<PytorchName, 4> pytorch_names{
    {{"kernel", "weight", true}, {"scale", "weight"}, {"table", "weight"}, {"bias", "bias"}}};

}  // namespace

ExportedParameter exported_parameter(const std::string& path, const Shape& shape,
                                     ExportNames names) {
  ExportedParameter there{path, shape};
  if (names == ExportNames::tessera) return there;
  const std::size_t slash = path.rfind('/');
  std::string layer = path.substr(0, slash), name = path.substr(slash + 1);
  for (const PytorchName& row : pytorch_names)
    if (row.name == name) {
      there.transposed = row.transposed && shape.size() == 2;
      name = row.there;
      break;
    }
  there.name = layer + "." + name;
  std::replace(there.name.begin(), there.name.end(), '/', '.');
  if (there.transposed) std::swap(there.shape[0], there.shape[1]);
  return there;
}

}  // namespace tessera
