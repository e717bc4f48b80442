"""The report of ``team demo``: its pictures, its page, its results as JSON, and the table on the terminal."""

from __future__ import annotations

import platform
import warnings
from dataclasses import asdict
from itertools import islice

import torch

from team import __version__
from team.data.sampler import EpisodeSampler
from team.demo import ROWS, SHOTS, DemoResult
from team.evaluation import embed
from team.evaluation.evaluate import draw_batches
from team.files import write_json
from team.methods import TEAM
from team.metric import solve_metric
from team.report.episode import EpisodePictures, draw_episode
from team.report.page import Section, html_facts, html_table, write_page
from team.report.plots import FeatureView, draw_curves, draw_features, draw_metric, read_curve


def write_report(result: DemoResult) -> None:
    """Write the pictures, ``demo.json`` and ``index.html`` into the result's folder."""
    folder, settings = result.folder, result.settings
    number = typical_episode(result)
    classes = _draw_episode_and_metric(result, number)
    per_step = settings.episodic.per_step
    curves = {row.name: read_curve(folder / row.variant / "metrics.jsonl", per_step) for row in result.rows}
    draw_curves(folder / "training.png", curves)
    write_json(
        folder / "demo.json",
        {
            "table": result.table(),
            "gain": {f"{shots}-shot": result.gain(shots) for shots in SHOTS},
            "intervals": {f"{shots}-shot": result.intervals(shots) for shots in SHOTS},
            "episode": number,
            "settings": asdict(settings),
            "data": {part: {"name": images.name, "checksum": images.checksum} for part, images in result.data.items()},
            "versions": _versions(),
            "seconds": {"this call": result.seconds, "training": result.training_seconds},
        },
    )
    write_page(result.page, "TEAM on glyphs it has never seen", headline(result), _sections(result, classes))


def typical_episode(result: DemoResult) -> int:
    """The 1-shot test episode whose gain over the baseline, and accuracy, are nearest to the mean of all episodes."""
    baseline, team = (result.rows[row].test[1].accuracies for row in (0, -1))
    away = (team - baseline - result.gain()).abs() + (team - team.mean()).abs()
    return int(away.argmin())


def headline(result: DemoResult) -> str:
    baseline, team = result.rows[0].test[1], result.rows[-1].test[1]
    trial = "A quick trial of the program, whose figures mean nothing. " if result.settings.trial else ""
    return (
        f"{trial}With one labelled example per class, TEAM names {team.mean:.2f} % of characters from scripts it has "
        f"never seen, its baseline {baseline.mean:.2f} %: {_difference(result, 1)}."
    )


def _difference(result: DemoResult, shots: int) -> str:
    gain, intervals = result.gain(shots), result.intervals(shots)
    verdict = "more than" if abs(gain) > intervals else "no more than"
    return f"a difference of {gain:+.1f} points, {verdict} the two 95 % intervals together ({intervals:.1f})"


def print_result(result: DemoResult) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title="Accuracy on test scripts never seen in training (%, with 95 % intervals)")
    for name in ("method", "what it adds", *(f"5-way {shots}-shot" for shots in SHOTS)):
        table.add_column(name, justify="right" if "shot" in name else "left")
    for row in _table_rows(result):
        table.add_row(*row)
    console.print(table)
    console.print(headline(result), highlight=False)
    console.print(f"The report: {result.page.resolve()}", highlight=False, soft_wrap=True)


def _table_rows(result: DemoResult) -> list[list[str]]:
    return [
        [
            row.name,
            ROWS[row.variant][1],
            *(f"{test.mean:.2f} ±\N{NO-BREAK SPACE}{test.ci95:.2f}" for test in row.test.values()),
        ]
        for row in result.rows
    ]


def _draw_episode_and_metric(result: DemoResult, number: int) -> list[str]:
    """Draw one 1-shot test episode as pictures, as the metric found for it, and as features; give its class names."""
    folder, test, shown = result.folder, result.data["test"], result.rows[-1].test[1]
    sampler = EpisodeSampler(test.labels, ways=shown.ways, shots=shown.shots, queries=shown.queries)
    drawn = next(islice(draw_batches(sampler, len(shown.accuracies), 1, shown.seed), number, None))
    labels, answers = drawn.support_labels[0], drawn.query_labels[0]
    classes = [test.classes[label] for label in drawn.classes[0].tolist()]
    images = test.images[drawn.support[0]], test.images[drawn.query[0]]
    predictions = {}
    for row in (result.rows[0], result.rows[-1]):
        support, query = (embed(row.model.network, part, size=row.model.size) for part in images)
        with torch.no_grad():
            predictions[row.name] = row.model.method(support, labels, query).argmax(-1)
    draw_episode(folder / "episode.png", EpisodePictures(images[0], labels, images[1], answers, classes), predictions)

    method = result.rows[-1].model.method
    assert isinstance(method, TEAM)  # of the last row
    chosen = method.settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a lowered λ: features of a trained network are large
        metric = solve_metric(
            support, labels, query, k=chosen.k, gamma=chosen.gamma, lam=chosen.lam, alpha=chosen.alpha
        )
    draw_metric(folder / "metric.png", metric.matrix)
    prototypes = torch.stack([support[labels == label].mean(0) for label in range(len(classes))])
    before = FeatureView("Before: features of the network", query, prototypes)
    projection = metric.projection.mT
    after = FeatureView("After: the same under the metric", query @ projection, prototypes @ projection)
    draw_features(folder / "features.png", (before, after), answers, classes)
    return classes


def _sections(result: DemoResult, classes: list[str]) -> list[Section]:
    folder, settings = result.folder, result.settings
    episodic, pretrain = settings.episodic, settings.pretrain
    queries = result.rows[0].test[1].queries
    header = ["method", "what it adds", *(f"5-way {shots}-shot" for shots in SHOTS)]
    return [
        Section(
            "The comparison",
            (
                "A few-shot task (an episode) shows five characters with one or five labelled examples each, and asks "
                f"for the names of {5 * queries} further images. Each row adds one part of the method to the row "
                "above, and is trained from the same start on the same tasks.",
                f"Accuracy in per cent over {settings.test_episodes} tasks with characters from "
                f"{_scripts(result)}: scripts that appear in no training and in no choice of settings. The number "
                "after ± is half of the 95 % interval. All rows were trained on 1-shot tasks; the 5-shot column tests "
                f"the same networks, and there TEAM and baseline have {_difference(result, 5)}.",
            ),
            html=html_table(header, _table_rows(result), numbers=len(SHOTS), strong=len(result.rows) - 1),
        ),
        Section(
            "One task, seen by both",
            (
                "On the left the one labelled example of each class; on the right of the line the images that the "
                "method gave this name. A green frame is right; a red frame with a cut corner is wrong. TEAM may look "
                "at all images of the task together, the baseline judges each by itself.",
                "Shown is a typical task: of all test tasks the one nearest to the average in accuracy and in gain.",
            ),
            (
                folder / "episode.png",
                f"Images of {', '.join(classes)}, beside the names given to them by baseline and by TEAM",
            ),
        ),
        Section(
            "The metric of this task",
            (
                "TEAM measures distance with a matrix computed anew for each task, by a formula, from its labelled and "
                "unlabelled images. Each cell says how much a pair of features counts together; the diagonal is each "
                "feature by itself, and the even background is about zero. The plain Euclidean distance would be a "
                "diagonal of ones and nothing else.",
            ),
            (folder / "metric.png", "Heat map of the metric"),
        ),
        Section(
            "Features before and after the metric",
            (
                "The same task as points: every sign is one unlabelled image, its colour and shape are its true class, "
                "a star is the labelled example of a class. Left, as the network sees them; right, in the space where "
                "plain distance is the distance of the metric. A hollow sign lies nearest to a wrong star.",
                "Both are flattened from many dimensions to the two in which the points differ most. The metric "
                "stretches the directions along which this task varies, and so lets the others count for less: the "
                "planes may look alike, but compare how much of the variance each of them holds.",
            ),
            (folder / "features.png", "Features in the plane, before and after the metric"),
        ),
        Section(
            "Training",
            (
                "On the left the loss on tasks with training characters. All rows see the same tasks, so their lines "
                "bend together; rows with TIM get blended, harder images from some point on. On the right the accuracy "
                "on characters of the validation scripts (Greek and Lao), by which the weights to keep are chosen.",
            ),
            (folder / "training.png", "Training loss and validation accuracy against episodes, for all rows"),
        ),
        Section(
            "How it was made",
            html=html_facts(
                [
                    ("network", f"conv4 with {settings.filters} filters, {settings.size}×{settings.size} images"),
                    (
                        "pre-training",
                        f"{pretrain.epochs} epochs over {len(result.data['train'].classes)} classes, batches of "
                        f"{pretrain.batch}, learning rate {pretrain.learning_rate:g}, label smoothing "
                        f"{pretrain.label_smoothing:g}",
                    ),
                    (
                        "training",
                        f"{episodic.episodes} 5-way 1-shot episodes a row, learning rate {episodic.learning_rate:g}, "
                        f"learned temperature; TIM after {episodic.mixing.start} episodes, in {episodic.mixing.on} of "
                        f"every {episodic.mixing.on + episodic.mixing.off}, on {episodic.mixed} images, which keep at "
                        f"least {episodic.mixing_range[0]:.0%} of themselves",
                    ),
                    (
                        "choices",
                        "all settings were chosen on the validation scripts; the test scripts gave the table and the "
                        "pictures",
                    ),
                    ("seed", str(episodic.seed)),
                    *((f"data, {part}", f"{x.name}, sha256 {x.checksum}") for part, x in result.data.items()),
                    ("versions", ", ".join(f"{name} {version}" for name, version in _versions().items())),
                    (
                        "time",
                        f"{result.training_seconds:.0f} s of training; this run took {result.seconds:.0f} s "
                        f"before the pictures, with {torch.get_num_threads()} CPU threads",
                    ),
                ]
            ),
        ),
    ]


def _scripts(result: DemoResult) -> str:
    names = list(dict.fromkeys(name.split(":")[0].capitalize() for name in result.data["test"].classes))
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _versions() -> dict[str, str]:
    from matplotlib import __version__ as matplotlib

    return {
        "team": __version__,
        "torch": torch.__version__,
        "matplotlib": matplotlib,
        "python": platform.python_version(),
    }
