"""Names of people, schools and streets, in many scripts. All people are made up."""

from __future__ import annotations

from dataclasses import dataclass

from tools.districts.dice import Dice


@dataclass(frozen=True)
class Naming:
    """Given and family names of one origin. `weight`: how many of a hundred families have these names."""

    weight: int
    given: tuple[str, ...]
    family: tuple[str, ...]


NAMINGS = (
    Naming(
        34,
        ("Ava", "Ethan", "Harper", "Mason", "Grace", "Owen", "Ruby", "Caleb", "Nora", "Miles", "Jo", "Mary Ann"),
        ("Smith", "Johnson", "Carter", "Bennett", "Hughes", "Walker", "Smith-Jones", "Van Dyke", "Lee", "Null"),
    ),
    Naming(
        20,
        ("Sofía", "Mateo", "Lucía", "Joaquín", "María José", "Íñigo", "Ximena", "Ángel"),
        ("García", "Núñez", "de la Cruz", "Peña", "Rodríguez", "Ibáñez", "Muñoz Vega"),
    ),
    Naming(
        8,
        ("Siobhán", "Conor", "Niamh", "Seán", "Aoife", "D'Arcy"),
        ("O'Brien", "O'Neill", "McCarthy", "Ó Briain", "D'Angelo", "M'Bala"),
    ),
    Naming(6, ("Thị Minh", "Văn Hùng", "Ngọc Ánh", "Đức"), ("Nguyễn", "Trần", "Phạm", "Đặng")),
    Naming(5, ("Łukasz", "Żaneta", "Święta", "Jiří", "Zoë"), ("Żółć", "Wiśniewski", "Dvořák", "Kovács", "Groß")),
    Naming(4, ("Þórdís", "Bjørn", "Åsa", "Jürgen"), ("Ólafsdóttir", "Sørensen", "Ångström", "Müller")),
    Naming(3, ("Δήμητρα", "Γιώργος", "Ελένη"), ("Παπαδοπούλου", "Νικολαΐδης", "Αγγέλου")),
    Naming(4, ("Мария", "Иван", "Ольга", "Юрій"), ("Иванова", "Петренко", "Щербакова", "Ї")),
    Naming(4, ("محمد", "ليلى", "عمر", "مريم"), ("الفاسي", "حداد", "العلي")),
    Naming(2, ("נועה", "דוד", "תמר"), ("כהן", "לוי", "בן־דוד")),
    Naming(3, ("प्रिया", "अर्जुन", "दीपिका"), ("शर्मा", "पटेल", "सिंह")),
    Naming(3, ("小明", "丽娜", "梓涵"), ("王", "李", "欧阳")),
    Naming(2, ("서연", "민준"), ("김", "박", "남궁")),
    Naming(1, ("さくら", "蓮"), ("佐藤", "𠮷田")),
    Naming(1, ("Kahuʻāina", "Ngozi", "Ọlá"), ("Kealoha", "Okonkwo-Ìṣọ̀lá", "Nkrumah")),
)
_WEIGHTED = tuple(naming for naming in NAMINGS for _ in range(naming.weight))

SCHOOL_NAMES = (
    "Riverside", "Lincoln", "Oak Grove", "St. Mary's", "Washington", "Cedar Hill", "César Chávez", "Lakeview",
    "Maple_Park", "Harriet Tubman", "Sunset", "Kealakehe", "Franklin", "Pine Ridge", "Ångström", "Rosa Parks",
)  # fmt: skip
STREETS = ("Main Street", "2nd Avenue", "O'Hare Road", "Calle Ocho", "Elm Street", "Plaza Núñez")
CITIES = ("Springdale", "Fairview", "Peñasco", "Coeur d'Alene", "Winston-Salem")
STATES = ("CA", "IL", "NM", "NY", "TX", "WA")
COUNTRIES = ("US", "US", "US", "US", "MX", "VN", "UA", "SY", "IN", "CN")
LANGUAGES = ("eng", "eng", "eng", "spa", "vie", "ukr", "ara", "hin", "zho")
PRONOUNS = ("she/her", "he/him", "they/them")


def pick_naming(dice: Dice) -> Naming:
    """The names to choose from for a family."""
    return dice.pick(_WEIGHTED)


def make_phone(dice: Dice) -> str:
    """A telephone number from the range that is reserved for fiction."""
    return f"+1-{200 + dice.roll(700)}-555-01{dice.roll(100):02d}"
