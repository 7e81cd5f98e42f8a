# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional network on scikit-learn's digits, through Relay's gradient and one compiled step.

    python examples/train_digits.py --optimizer adam --epochs 12 --plot digits.png

Needs scikit-learn, and matplotlib for --plot.
"""

import argparse
import time

import numpy as np

import baton
from baton import relay

BATCH = 64


def digits(seed=0):
    """Images (n, 1, 8, 8) in [0, 1] and labels: 1,437 to train with, 360 to test with."""
    from sklearn.datasets import load_digits

    data = load_digits()
    x, y = data.images[:, None].astype("float32") / 16, data.target.astype("int64")
    order = np.random.default_rng(seed).permutation(len(x))
    cut = len(x) * 4 // 5
    return (x[order[:cut]], y[order[:cut]]), (x[order[cut:]], y[order[cut:]])


def parameters(seed=0):
    """Names and first values of the weights."""
    rng = np.random.default_rng(seed)

    def normal(*shape, fan_in):
        return (rng.normal(size=shape) * np.sqrt(2 / fan_in)).astype("float32")

    return {
        "conv": normal(16, 1, 3, 3, fan_in=9),
        "conv_bias": np.zeros(16, "float32"),
        "hidden": normal(64, 256, fan_in=256),
        "hidden_bias": np.zeros(64, "float32"),
        "out": normal(10, 64, fan_in=64),
        "out_bias": np.zeros(10, "float32"),
    }


def network(x, w):
    """Logarithms of the probabilities of the ten digits."""
    y = relay.nn.bias_add(relay.nn.conv2d(x, w["conv"], padding=1), w["conv_bias"])
    y = relay.nn.max_pool2d(relay.nn.relu(y), pool_size=2, strides=2)
    y = relay.nn.relu(relay.nn.bias_add(relay.nn.dense(relay.nn.batch_flatten(y), w["hidden"]), w["hidden_bias"]))
    return relay.nn.log_softmax(relay.nn.bias_add(relay.nn.dense(y, w["out"]), w["out_bias"]))


def variables(values, suffix=""):
    return {k: relay.var(k + suffix, shape=v.shape, dtype=str(v.dtype)) for k, v in values.items()}


def momentum(w, grads, state, rate=0.05, keep=0.9):
    """Stochastic gradient descent with momentum: new weights, new state."""
    speed = {k: relay.const(keep) * state[k + ".speed"] - relay.const(rate) * grads[k] for k in w}
    return {k: w[k] + speed[k] for k in w}, {k + ".speed": speed[k] for k in w}


def adam(w, grads, state, rate=0.002, b1=0.9, b2=0.999):
    """Adam; its count of steps is part of the state."""
    c, new, out = relay.const, {}, {"step": state["step"] + relay.const(1.0)}
    fix1 = c(1.0) - relay.power(c(b1), out["step"])
    fix2 = c(1.0) - relay.power(c(b2), out["step"])
    for k in w:
        m = c(b1) * state[k + ".mean"] + c(1 - b1) * grads[k]
        v = c(b2) * state[k + ".square"] + c(1 - b2) * grads[k] * grads[k]
        new[k] = w[k] - c(rate) * (m / fix1) / (relay.sqrt(v / fix2) + c(1e-8))
        out[k + ".mean"], out[k + ".square"] = m, v
    return new, out


def first_state(optimizer, weights):
    names = {"momentum": ["speed"], "adam": ["mean", "square"]}[optimizer]
    state = {} if optimizer == "momentum" else {"step": np.zeros((), "float32")}
    return {**state, **{f"{k}.{n}": np.zeros_like(v) for k, v in weights.items() for n in names}}


def training_step(optimizer, weights, state):
    """The Relay function of a step: (images, labels, weights, state) to (loss, new weights, new state)."""
    x, y = relay.var("x", shape=(BATCH, 1, 8, 8)), relay.var("y", shape=(BATCH,), dtype="int64")
    w = variables(weights)
    loss = relay.nn.nll_loss(network(x, w), y, relay.ones((10,), "float32"))
    grad = relay.transform.gradient(relay.Function([x, y, *w.values()], loss), mode="first_order")
    # Its body with the step's own variables.
    own_x, own_y, w, s = relay.var("x", shape=(BATCH, 1, 8, 8)), relay.var("y", shape=(BATCH,), dtype="int64"), variables(weights), variables(state)
    body = relay.analysis.bind(grad, dict(zip(grad.params, [own_x, own_y, *w.values()], strict=True))).body
    value, grads = body.fields
    by_name = dict(zip(w, grads.fields[2:], strict=True))  # those by x and y are not used
    new, after = {"momentum": momentum, "adam": adam}[optimizer](w, by_name, s)
    return relay.Function([own_x, own_y, *w.values(), *s.values()], relay.Tuple([value, *(new[k] for k in w), *(after[k] for k in s)]))


def predictor(weights):
    x, w = relay.var("x", shape=(BATCH, 1, 8, 8)), variables(weights)
    return baton.compile(relay.Function([x, *w.values()], relay.argmax(network(x, w), axis=1)))


def train(optimizer="adam", epochs=12, seed=0, report=lambda *_: None):
    """Losses of all steps, and the accuracy on the test images after each epoch; the seconds of a step."""
    (images, labels), (test_images, test_labels) = digits(seed)
    weights = parameters(seed)
    state = first_state(optimizer, weights)
    step, predict = baton.compile(training_step(optimizer, weights, state)), predictor(weights)
    values = [*weights.values(), *state.values()]
    rng = np.random.default_rng(seed)
    losses, accuracies, seconds = [], [], []
    for epoch in range(epochs):
        order = rng.permutation(len(images))
        for at in range(0, len(order) - BATCH + 1, BATCH):
            pick = order[at : at + BATCH]
            begin = time.perf_counter()
            loss, *values = step(images[pick], labels[pick], *values)
            seconds.append(time.perf_counter() - begin)
            losses.append(float(np.asarray(loss)))
        accuracies.append(accuracy(predict, values[: len(weights)], test_images, test_labels))
        report(epoch, np.mean(losses[-len(order) // BATCH :]), accuracies[-1])
    return losses, accuracies, float(np.median(seconds))


def accuracy(predict, weights, images, labels):
    right = 0
    for at in range(0, len(images), BATCH):
        part = images[at : at + BATCH]
        full = np.concatenate([part, np.zeros((BATCH - len(part), *part.shape[1:]), "float32")])
        right += int(np.sum(np.asarray(predict(full, *weights))[: len(part)] == labels[at : at + len(part)]))
    return right / len(images)


def plot(path, runs):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), constrained_layout=True)
    for name, (losses, accuracies, _) in runs.items():
        per = len(losses) / len(accuracies)
        smooth = np.convolve(losses, np.ones(11) / 11, mode="valid")
        left.semilogy((np.arange(len(smooth)) + 5) / per, smooth, label=name)
        right.plot(np.arange(1, len(accuracies) + 1), 100 * np.asarray(accuracies), marker="o", markersize=3, label=name)
    left.set(title="Training loss (mean of 11 steps)", xlabel="epoch", ylabel="negative log-likelihood")
    right.set(title="Accuracy on 360 test images", xlabel="epoch", ylabel="percent")
    right.axhline(95, color="gray", linewidth=0.8, linestyle="--")
    for a in (left, right):
        a.grid(alpha=0.3)
        a.legend()
    figure.savefig(path, dpi=120)


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--optimizer", choices=["momentum", "adam", "both"], default="both")
    args.add_argument("--epochs", type=int, default=12)
    args.add_argument("--seed", type=int, default=0)
    args.add_argument("--plot", help="where to write the curves, as a PNG file")
    args = args.parse_args()
    runs = {}
    for name in ["momentum", "adam"] if args.optimizer == "both" else [args.optimizer]:
        runs[name] = train(
            name,
            args.epochs,
            args.seed,
            lambda epoch, loss, right, name=name: print(f"{name} epoch {epoch + 1:2d}: loss {loss:.4f}, test accuracy {right:.1%}"),
        )
        print(f"{name}: {1e6 * runs[name][2]:.0f} us a step of {BATCH} images")
    if args.plot:
        plot(args.plot, runs)


if __name__ == "__main__":
    main()
