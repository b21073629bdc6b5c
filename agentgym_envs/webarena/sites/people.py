"""The people of a world. The same people are customers of the shop, write in the forum and push code."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from agentgym_envs.webarena.sites.country import Country, Town
from agentgym_envs.webarena.sites.words import words

_FIRST = words("""
    Aaron Adele Aisha Alan Alice Amara Amir Ana Andre Anika Anton Arjun Astrid Beatriz Ben Bianca Bruno Callum Camila
    Carla Cem Chloe Clara Conor Daniel Daria David Dina Diego Edith Elena Eli Emil Emma Enzo Erik Esther Eva Farah Felix
    Fiona Frida Gabriel George Grace Greta Hana Hassan Helen Henry Hugo Ida Imran Ines Iris Isaac Ivan Jack Jamal Jana
    Jasmin Jonas Jorge Julia Kaito Karim Karin Kate Kemal Kira Lara Lars Layla Leon Lina Louis Lucia Luka Mara Marco
    Maria Mateo Maya Mila Milan Mina Nadia Naomi Nils Nina Noah Nora Olga Oliver Omar Oscar Paula Pedro Petra Priya
    Quinn Rafael Rania Rosa Ruben Ruth Samir Sara Selma Simon Sofia Stefan Tara Theo Tomas Uma Vera Victor Wanda Wei
    Yara Yusuf Zoe
""")
_LAST = words("""
    Abbott Adeyemi Ahmed Almeida Andersen Bailey Baker Banerjee Barros Becker Bennett Berg Bianchi Brandt Bryant Campos
    Carter Chen Costa Cruz Dahl Davies Demir Diaz Dixon Duarte Ekström Ellis Farouk Ferrari Fischer Fletcher Flores
    Fraser Gallo Garcia Gibson Gomez Grant Gupta Haas Hansen Harper Hayes Hoffman Holm Hughes Ito Ivanov Jansen Jensen
    Kaya Keller Khan Kim Klein Kovacs Kumar Lang Larsen Lee Lopez Lund Marsh Martin Mehta Meyer Molina Moreau Morris
    Nakamura Navarro Nguyen Novak Nowak Okafor Olsen Ortiz Osman Owens Park Patel Pereira Popov Price Ramos Reyes Ricci
    Rossi Roth Sato Schmidt Silva Singh Sokolov Suzuki Tan Torres Turner Vargas Vega Vogel Walsh Weber Wright Yamada
    Young Zhang Ziegler
""")
_TAILS = ("", "", "", "_dev", "42", "_reads", "77", ".codes", "_98", "_online", "x", "3")
PEOPLE = 160


@dataclass(frozen=True, slots=True)
class Person:
    """A person. `number` counts from 1; the agent acts as person 1 on every site. `user` is unique."""

    number: int
    first: str
    last: str
    user: str
    town: Town
    street: str
    phone: str

    @property
    def name(self) -> str:
        """First and last name."""
        return f"{self.first} {self.last}"

    @property
    def email(self) -> str:
        """E-mail address at a provider that does not exist."""
        return f"{self.user}@mail.test"


def make_people(
    rng: random.Random, country: Country, count: int = PEOPLE, known: Sequence[Person] = ()
) -> tuple[Person, ...]:
    """Generate people of a country, in addition to those known. Names are unique; large towns have more people."""
    weights = [town.population for town in country.towns]
    names = dict.fromkeys((person.first, person.last) for person in known)
    while len(names) < len(known) + count:
        names[rng.choice(_FIRST), rng.choice(_LAST)] = None
    people, users = [], {person.user for person in known}
    for number, (first, last) in islice(enumerate(names, 1), len(known), None):
        town = rng.choices(country.towns, weights)[0]
        user = _user(rng, first, last, users)
        users.add(user)
        phone = f"0{rng.randint(10, 99)} 555 {rng.randint(1000, 9999)}"
        people.append(Person(number, first, last, user, town, town.address(rng), phone))
    return tuple(people)


def _user(rng: random.Random, first: str, last: str, taken: set[str]) -> str:
    """Return a user name that is not taken: "jansen_dev"."""
    plain = last.lower().replace("ö", "o")
    while True:
        head = rng.choice((first.lower(), f"{first.lower()}{plain[:2]}", f"{first[0].lower()}{plain}", plain))
        user = head + rng.choice(_TAILS)
        if user not in taken:
            return user
