// SPDX-License-Identifier: Apache-2.0
// Creates a checkpoint, reads its state and verifies it, by one process.
#include <algorithm>
#include <array>
#include <utility>

#include <tessera/base/text.hpp>
#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/checksums.hpp>
#include <tessera/checkpoint/contents.hpp>
#include <tessera/checkpoint/hyperslabs.hpp>

namespace tessera {
namespace {

constexpr const char* format_name = "tessera checkpoint";

/// Calls f(name, value) for each attribute that is read back.
template <class State, class F>
void for_each_number(State& state, const F& f) {
  f("step", state.step);
  f("loss_scale", state.loss_scale.value);
  f("loss_scale_good_steps", state.loss_scale.good_steps);
  f("skipped_steps", state.loss_scale.skipped_steps);
}

/// Calls f(name, text) for each text of this version of the format.
template <class State, class F>
void for_each_text(State& state, Size version, const F& f) {
  f("config", state.config);
  f("provenance", state.provenance);
  if (version == 1) return;
  f("data", state.data);
  f("training", state.training);
}

/// Numbers per entry of a list.
template <class Row>
constexpr Size width_of = static_cast<Size>(sizeof(Row) / sizeof(double));

/// Calls f(name, list) for each list of this version of the format.
template <class State, class F>
void for_each_list(State& state, Size version, const F& f) {
  f("epoch_losses", state.epoch_losses);
  f("losses_so_far", state.losses_so_far);
  f("validations", state.validations);
  if (version < 3) return;
  f("layer_losses_so_far", state.layer_losses_so_far);
  f("validation_parts", state.validation_parts);
  f("routing_so_far", state.routing_so_far);
}

template <class Row>
Shape shape_of(const std::vector<Row>& list) {
  const Size rows = static_cast<Size>(list.size());
  return width_of<Row> == 1 ? Shape{rows} : Shape{rows, width_of<Row>};
}

std::vector<Hyperslab> whole(const Shape& shape) {
  return hyperslabs_of({Shape(shape.size(), 0), shape}, {0, num_elements(shape)});
}

template <class Row>
Size hash_of_list(const std::vector<Row>& list) {
  return hash_of_run(reinterpret_cast<const double*>(list.data()), num_elements(shape_of(list)), 0);
}

template <class Value>
Value attribute_of(const Hdf5File& file, const std::string& path, const std::string& name) {
  const AttributeValue value = file.attribute("", name);
  if (const Value* found = std::get_if<Value>(&value)) return *found;
  throw Error(ExitCode::usage, "{}: {}: has an unexpected type", path, name);
}

Size version_of(const Hdf5File& file, const std::string& path) {
  return attribute_of<Size>(file, path, "format_version");
}

Hdf5File opened(const std::string& path) {
  Hdf5File file = Hdf5File::open(path);
  const auto is_checkpoint = [&] {
    try {
      return file.attribute("", "format") == AttributeValue(format_name);
    } catch (const Error&) {
      return false;
    }
  };
  if (!is_checkpoint()) throw Error(ExitCode::usage, path + ": is not a Tessera checkpoint");
  const Size version = version_of(file, path);
  if (version < 1 || version > checkpoint_version)
    throw Error(ExitCode::usage, "{}: format_version: must be from 1 to {}, not {}", path,
                checkpoint_version, version);
  return file;
}

/// Reads an array in pieces and checks its checksum. Returns its bytes.
template <class T>
Size check_array(const Hdf5File& file, const std::string& path, const ArrayFacts& facts) {
  const Size all = num_elements(facts.shape);
  const Size elements = checkpoint_piece / static_cast<Size>(sizeof(T));
  const Piece block{Shape(facts.shape.size(), 0), facts.shape};
  std::vector<T> values(std::min(all, elements));
  Size sum = 0;
  for (Size first = 0; first < all; first += elements) {
    const Range range = intersection({first, elements}, {0, all});
    file.read(facts.name, facts.type, hyperslabs_of(block, range), values.data());
    add_hash(sum, hash_of_run(values.data(), range.count, first));
  }
  check_hash(file, path, facts.name, sum);
  return all * static_cast<Size>(sizeof(T));
}

}  // namespace

void create_checkpoint(const std::string& path, const std::vector<CheckpointTensor>& tensors,
                       const TrainingState& state) {
  Hdf5File file = Hdf5File::create(path);
  file.set_attribute("", "format", std::string(format_name));
  file.set_attribute("", "format_version", checkpoint_version);
  for_each_number(
      state, [&](const char* name, const auto& value) { file.set_attribute("", name, value); });
  // Only for readers: both follow from the lists.
  file.set_attribute("", "epoch", state.epoch());
  file.set_attribute("", "batch", state.batch());
  for_each_text(state, checkpoint_version, [&](const char* name, const std::string& text) {
    file.add_text(name, text);
    file.set_attribute(name, checksum_attribute, hash_of_text(text));
  });
  add_contents(file, tensors);
  for_each_list(state, checkpoint_version, [&](const char* name, const auto& list) {
    const Shape shape = shape_of(list);
    file.add_array({name, shape, DType::float64});
    file.write(name, DType::float64, whole(shape), list.data());
    file.set_attribute(name, checksum_attribute, hash_of_list(list));
  });
  for (const CheckpointTensor& tensor : tensors) {
    file.add_array({tensor.name, tensor.shape, tensor.type});
    file.set_attribute(tensor.name, "axes", join(tensor.logical_axes));
    file.set_attribute(tensor.name, checksum_attribute, Size{0});
  }
  file.close();
}

TrainingState read_state(const std::string& path) {
  const Hdf5File file = opened(path);
  TrainingState state;
  for_each_number(state, [&](const char* name, auto& value) {
    value = attribute_of<std::decay_t<decltype(value)>>(file, path, name);
  });
  for_each_text(state, version_of(file, path), [&](const char* name, std::string& text) {
    text = file.text(name);
    check_hash(file, path, name, hash_of_text(text));
  });
  const std::vector<ArrayFacts> arrays = file.arrays();
  for_each_list(state, version_of(file, path), [&](const char* name, auto& list) {
    using Row = typename std::decay_t<decltype(list)>::value_type;
    const auto facts = std::find_if(arrays.begin(), arrays.end(),
                                    [&](const ArrayFacts& array) { return array.name == name; });
    if (facts == arrays.end()) throw Error(ExitCode::usage, "{}: {}: is missing", path, name);
    constexpr Size most_rows = 1 << 24;
    const Size rows = facts->shape.empty() ? -1 : facts->shape.front();
    list.resize(std::clamp<Size>(rows, 0, most_rows), Row{});
    if (facts->shape != shape_of(list))
      throw Error(ExitCode::usage, "{}: {}: has the unexpected shape {}", path, name,
                  to_string(facts->shape));
    file.read(name, DType::float64, whole(facts->shape), list.data());
    check_hash(file, path, name, hash_of_list(list));
  });
  return state;
}

Size verify_checkpoint(const std::string& path) {
  const TrainingState state = read_state(path);
  const Hdf5File file = opened(path);
  const std::array<std::pair<const char*, Size>, 2> counts{
      {{"epoch", state.epoch()}, {"batch", state.batch()}}};
  for (const auto& [name, value] : counts)
    if (const Size found = attribute_of<Size>(file, path, name); found != value)
      throw Error(ExitCode::usage, "{}: {}: is {}, but its losses are those of {}", path, name,
                  found, value);
  check_contents(file, path);
  Size bytes = 0;
  for (const ArrayFacts& facts : file.arrays()) {
    if (facts.type == DType::float32) bytes += check_array<float>(file, path, facts);
    if (facts.type == DType::float64) bytes += check_array<double>(file, path, facts);
    if (facts.type == DType::int64) bytes += check_array<Size>(file, path, facts);
  }
  return bytes;
}

}  // namespace tessera
