// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/config/model_kinds.hpp>
#include <tessera/config/toml_text.hpp>

namespace tessera {
namespace {

/// A kind of model: how its layers are made, and whether its own keys are as they are by default.
struct ModelKindRow {
  ModelSpec (*make)(const ModelConfig& config);
  bool (*untouched)(const ModelConfig& config);
  const char* size_key;
};

/// In the order of the enumerators.
constexpr std::array<ModelKindRow, names_of<ModelKind>.size()> rows{{
    {[](const ModelConfig& c) { return mlp(c.mlp); },
     [](const ModelConfig& c) { return c.mlp.widths.empty(); }, "model.widths"},
    {[](const ModelConfig& c) { return residual_mlp(c.residual_mlp, c.mlp); },
     [](const ModelConfig& c) { return c.residual_mlp == ResidualMlpConfig{}; },
     "model.residual_mlp.width"},
    {[](const ModelConfig& c) { return transformer(c.transformer, c.mlp); },
     [](const ModelConfig& c) { return c.transformer == TransformerConfig{}; },
     "model.transformer.width"},
    {[](const ModelConfig& c) { return vae(c.vae, c.mlp); },
     [](const ModelConfig& c) { return c.vae == VaeConfig{}; }, "model.vae.hidden"},
    {[](const ModelConfig& c) { return pinn(c.pinn, c.mlp); },
     [](const ModelConfig& c) { return c.pinn == PinnConfig{}; }, "model.pinn.width"},
    {[](const ModelConfig& c) { return fno(c.fno, c.mlp); },
     [](const ModelConfig& c) { return c.fno == FnoConfig{}; }, "model.fno.width"},
}};

}  // namespace

ModelSpec make_model(const ModelConfig& config) {
  const auto kind = static_cast<std::size_t>(config.kind);
  for (std::size_t other = 0; other < rows.size(); ++other)
    if (other != kind && !rows[other].untouched(config))
      reject("model.kind", name_of(config.kind), "must be \"{}\" if keys such as {} are given",
             names_of<ModelKind>[other], rows[other].size_key);
  return rows[kind].make(config);
}

const char* size_key(ModelKind kind) { return rows[static_cast<std::size_t>(kind)].size_key; }

}  // namespace tessera
