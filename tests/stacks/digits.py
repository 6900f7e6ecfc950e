"""scikit-learn's own classifier on its own digits, saying what it says of its own accord."""
import argparse
import warnings

from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, default=0.001)
parser.add_argument("--rounds", type=int, default=15)
parser.add_argument("--seed", type=int, default=0)
options = parser.parse_args()
warnings.simplefilter("ignore", ConvergenceWarning)
images, digits = load_digits(return_X_y=True)
MLPClassifier(hidden_layer_sizes=(32,), learning_rate_init=options.rate, max_iter=options.rounds, tol=0.0,
              n_iter_no_change=options.rounds, random_state=options.seed, verbose=True).fit(images[:600] / 16, digits[:600])
