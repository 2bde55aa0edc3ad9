import QtQuick
import QtQuick.Controls.Basic

// One of a few words.
ComboBox {
    id: choice
    implicitHeight: 28
    Accessible.name: displayText
    background: Rectangle {
        radius: 6
        color: choice.hovered ? look.c.hover : look.c.sunken
        border.width: choice.visualFocus ? 2 : 1
        border.color: choice.visualFocus ? look.c.accent : look.c.edge
    }
    contentItem: Text {
        leftPadding: 10
        text: choice.displayText
        color: look.c.text
        verticalAlignment: Text.AlignVCenter
    }
    indicator: Text {
        x: choice.width - width - 10
        anchors.verticalCenter: parent.verticalCenter
        text: "▾"
        color: look.c.text_soft
    }
    delegate: ItemDelegate {
        id: entry
        required property int index
        required property string modelData
        width: ListView.view.width
        height: 28
        highlighted: choice.highlightedIndex === index
        contentItem: Text { text: entry.modelData; color: look.c.text; verticalAlignment: Text.AlignVCenter }
        background: Rectangle { radius: 4; color: entry.highlighted ? look.c.selected : "transparent" }
    }
    popup: Popup {
        y: choice.height + 4
        width: choice.width
        padding: 4
        implicitHeight: contentItem.implicitHeight + 8
        contentItem: ListView { implicitHeight: contentHeight; model: choice.popup.visible ? choice.delegateModel : null }
        background: Rectangle { radius: 6; color: look.c.raised; border.color: look.c.edge }
    }
}
