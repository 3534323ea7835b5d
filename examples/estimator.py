"""Arrays in, classes out: the scikit-learn estimator on digits read pixel by pixel."""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from auxrnn import AuxRNNClassifier

X, y = load_digits(return_X_y=True)  # 1797 sequences of 64 steps
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
classifier = AuxRNNClassifier(
    objective="reconstruct",
    supervised_window=16,
    segment_length=32,
    auxiliary_window=32,
    drop_connect=0.2,
    random_state=0,
)
classifier.fit(X_train, y_train)
print(f"accuracy {100 * classifier.score(X_test, y_test):.1f} %")
print(classifier.predict_proba(X_test[:1]).round(2))
