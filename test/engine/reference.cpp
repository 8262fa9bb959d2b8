// SPDX-License-Identifier: Apache-2.0
#include "engine/reference.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tessera::train_test {
namespace {

using Row = std::vector<double>;

double gelu_inner(double z) { return std::sqrt(2 / std::acos(-1.0)) * (z + 0.044715 * z * z * z); }

double activate(Activation kind, double z) {
  switch (kind) {
    case Activation::identity:
      return z;
    case Activation::relu:
      return std::max(z, 0.0);
    case Activation::tanh:
      return std::tanh(z);
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-z));
    case Activation::gelu:
      return z / 2 * (1 + std::tanh(gelu_inner(z)));
  }
  return 0;
}

double slope(Activation kind, double z) {
  const double y = activate(kind, z);
  switch (kind) {
    case Activation::identity:
      return 1;
    case Activation::relu:
      return z > 0 ? 1 : 0;
    case Activation::tanh:
      return 1 - y * y;
    case Activation::sigmoid:
      return y * (1 - y);
    case Activation::gelu: {
      const double t = std::tanh(gelu_inner(z));
      return (1 + t) / 2 +
             z / 2 * (1 - t * t) * std::sqrt(2 / std::acos(-1.0)) * (1 + 3 * 0.044715 * z * z);
    }
  }
  return 0;
}

/// Returns the loss of one row, not divided by anything, and its derivative by the prediction.
std::pair<double, Row> loss_of_row(LossKind kind, const Row& p, std::span<const double> t) {
  double sum = 0, squares = 0, target = 0;
  Row gradient(p.size());
  for (std::size_t j = 0; j < p.size(); ++j) {
    const double d = p[j] - t[j];
    squares += d * d;
    target += t[j] * t[j];
    if (kind == LossKind::mse) {
      sum += d * d;
      gradient[j] = 2 * d;
    } else if (kind == LossKind::mae) {
      sum += std::abs(d);
      gradient[j] = d > 0 ? 1 : d < 0 ? -1 : 0;
    }
  }
  if (kind == LossKind::relative_l2) {
    sum = std::sqrt(squares / target);
    for (std::size_t j = 0; j < p.size(); ++j)
      gradient[j] = (p[j] - t[j]) / std::sqrt(squares * target);
  }
  return {sum, gradient};
}

double scheduled(const ScheduleConfig& c, double base, double s) {
  const double pi = std::acos(-1.0);
  const double w = static_cast<double>(c.warmup_steps), n = static_cast<double>(c.steps);
  const double decay = static_cast<double>(c.decay_steps);
  if (s < w) return base * (c.start_factor + (1 - c.start_factor) * s / w);
  const auto cosine = [&](double part) {
    return base *
           ((1 - c.end_factor) * (1 + std::cos(pi * std::min(part, 1.0))) / 2 + c.end_factor);
  };
  switch (c.kind) {
    case ScheduleKind::constant:
      return base;
    case ScheduleKind::exponential:
      return base * std::pow(c.rate, (s - w) / n);
    case ScheduleKind::cosine:
    case ScheduleKind::warmup_cosine:
      return cosine((s - w) / (n - w));
    case ScheduleKind::linear:
      return base * (c.end_factor + (1 - c.end_factor) * (1 - std::min((s - w) / (n - w), 1.0)));
    case ScheduleKind::step:
      return base * std::pow(c.rate, std::floor((s - w) / n));
    case ScheduleKind::wsd:
      if (s < n - decay) return base;
      return s < n ? base * (1 - (1 - c.end_factor) * (s - (n - decay)) / decay)
                   : base * c.end_factor;
  }
  return 0;
}

}  // namespace

Reference::Reference(const ModelConfig& model, const TrainingConfig& training,
                     std::vector<double> parameters)
    : model_(model),
      training_(training),
      parameters_(std::move(parameters)),
      gradients_(parameters_.size()),
      first_moment_(parameters_.size()),
      second_moment_(parameters_.size()) {
  const MlpConfig& net = model_.mlp;
  const OptimizerConfig& c = training_.optimizer;
  for (std::size_t l = 0; l + 1 < net.widths.size(); ++l) {
    weight_decay_.resize(
        weight_decay_.size() + static_cast<std::size_t>(net.widths[l] * net.widths[l + 1]),
        c.weight_decay);
    if (net.bias)
      weight_decay_.resize(weight_decay_.size() + static_cast<std::size_t>(net.widths[l + 1]),
                           c.weight_decay_on == WeightDecayOn::kernels ? 0 : c.weight_decay);
  }
}

double Reference::add_sample(std::span<const double> x, std::span<const double> y, double weight) {
  const MlpConfig& net = model_.mlp;
  const std::size_t layers = net.widths.size() - 1;
  const auto kind = [&](std::size_t l) {
    return l + 1 == layers ? net.output_activation : net.activation;
  };
  std::vector<Row> outputs{Row(x.begin(), x.end())}, sums;
  std::vector<std::size_t> kernels;
  std::size_t at = 0;
  for (std::size_t l = 0; l < layers; ++l) {
    const std::size_t in = net.widths[l], out = net.widths[l + 1];
    const std::size_t bias = at + in * out;
    Row z(out), a(out);
    for (std::size_t j = 0; j < out; ++j) {
      if (net.bias) z[j] = parameters_[bias + j];
      for (std::size_t i = 0; i < in; ++i) z[j] += outputs[l][i] * parameters_[at + i * out + j];
      a[j] = activate(kind(l), z[j]);
    }
    kernels.push_back(at);
    sums.push_back(z);
    outputs.push_back(a);
    at = bias + (net.bias ? out : 0);
  }

  auto [loss, dy] = loss_of_row(training_.loss, outputs.back(), y);
  for (std::size_t l = layers; l-- > 0;) {
    const std::size_t in = net.widths[l], out = net.widths[l + 1];
    const std::size_t bias = kernels[l] + in * out;
    Row dx(in);
    for (std::size_t j = 0; j < out; ++j) {
      const double dz = dy[j] * slope(kind(l), sums[l][j]);
      if (net.bias) gradients_[bias + j] += weight * dz;
      for (std::size_t i = 0; i < in; ++i) {
        gradients_[kernels[l] + i * out + j] += weight * dz * outputs[l][i];
        dx[i] += dz * parameters_[kernels[l] + i * out + j];
      }
    }
    dy = dx;
  }
  return loss;
}

double Reference::compute_gradients(const Table& x, const Table& y, Range rows) {
  const double terms = static_cast<double>(
      training_.loss == LossKind::relative_l2 ? rows.count : rows.count * y.cols);
  const bool sums = training_.distributed.gradient_reduce_type == GradientReduceType::sum;
  std::fill(gradients_.begin(), gradients_.end(), 0);
  double loss = 0;
  for (Size i = rows.begin; i < rows.end(); ++i)
    loss += add_sample(x.row(i), y.row(i), sums ? 1 : 1 / terms);
  return loss / terms;
}

std::vector<double> Reference::fit(const Table& x, const Table& y) {
  std::vector<double> epochs;
  for (Size epoch = 0; epoch < training_.num_epochs; ++epoch) {
    double sum = 0, batches = 0;
    for (Size begin = 0; begin < x.rows; begin += training_.batch_size, ++batches) {
      sum += compute_gradients(x, y, {begin, std::min(training_.batch_size, x.rows - begin)});
      clip_by_value();
      update(scheduled(training_.schedule, training_.learning_rate, static_cast<double>(steps_)),
             norm_factor());
    }
    epochs.push_back(sum / batches);
  }
  return epochs;
}

void Reference::clip_by_value() {
  if (!training_.clip.value) return;
  for (double& g : gradients_) g = std::clamp(g, -*training_.clip.value, *training_.clip.value);
}

double Reference::norm_factor() const {
  if (!training_.clip.global_norm) return 1;
  double squares = 0;
  for (double g : gradients_) squares += g * g;
  return std::min(1.0, *training_.clip.global_norm / std::sqrt(squares));
}

void Reference::update(double rate, double factor) {
  const OptimizerConfig& c = training_.optimizer;
  const double t = static_cast<double>(++steps_);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const double g = factor * gradients_[i];
    double &p = parameters_[i], &m = first_moment_[i], &v = second_moment_[i];
    switch (c.kind) {
      case OptimizerKind::sgd:
        m = g + c.momentum * m;
        p -= rate * (c.nesterov ? g + c.momentum * m : m);
        break;
      case OptimizerKind::adam:
      case OptimizerKind::adamw:
        m = c.beta1 * m + (1 - c.beta1) * g;
        v = c.beta2 * v + (1 - c.beta2) * g * g;
        p -= rate * (m / (1 - std::pow(c.beta1, t)) /
                         (std::sqrt(v / (1 - std::pow(c.beta2, t))) + c.epsilon) +
                     weight_decay_[i] * p);
        break;
      case OptimizerKind::rmsprop:
        v = c.decay * v + (1 - c.decay) * g * g;
        p -= rate * g / std::sqrt(v + c.epsilon);
        break;
    }
  }
}

}  // namespace tessera::train_test
