import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--seed", type=int, default=0)
options = parser.parse_args()
weight = 4.0
print("hello")
for step in range(options.steps):
    loss = weight * weight + 0.01
    weight -= options.lr * 2 * weight
    print(f"step {step}: loss {loss:.6g}")
