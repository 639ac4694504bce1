"""The bodies of the routes of profiles as models: what sync/application/set_profile.py takes and tells (S3)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from infra.openapi.models import Closed

ProjectProfile = Literal["open", "canonical", "compatibility"]


class ProfileChange(Closed):
    profile: Annotated[
        ProjectProfile | None,
        Field(description="open: any type. canonical: type `event`. compatibility: the types of trees. Null: none."),
    ]


class ProfileOfProject(Closed):
    project: str
    profile: ProjectProfile


class ListedProfile(ProfileOfProject):
    set_by: Literal["operator"]


class ProfileAnswer(ProfileOfProject):
    set_by: Annotated[
        Literal["operator", "deployment", "default"],
        Field(description="deployment: the parameter ProjectProfiles. default: nobody, so it is open."),
    ]


class ProfileList(Closed):
    profiles: list[ListedProfile]
    deployment: Annotated[
        dict[str, ProjectProfile],
        Field(description="By project, on the first page: what the deployment says where no operator did."),
    ]
    next_after: str | None


MODELS: tuple[type[BaseModel], ...] = (ProfileChange, ProfileAnswer, ProfileList)
