"""The paper's simulation study (section 4, its appendices): users, evaluation, runner, figures."""
